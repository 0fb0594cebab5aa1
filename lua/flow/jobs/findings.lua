-- findings.lua: what is wrong with a configuration, all of it and not only the first: errors keep a job from being submitted, warnings do
-- not.

local findings = {}
findings.__index = findings

function findings.new() return setmetatable({ errors = 0 }, findings) end

-- place: where it was written, "" for nowhere in particular.
function findings:add(severity, place, text, ...)
  if select("#", ...) > 0 then text = text:format(...) end
  local line = (place ~= "" and place .. ": " or "") .. (severity == "warning" and "warning: " or "") .. text
  for _, said in ipairs(self) do
    if said.text == line then return end
  end
  self[#self + 1] = { severity = severity, place = place, text = line }
  if severity == "error" then self.errors = self.errors + 1 end
end

function findings:error(place, text, ...) self:add("error", place, text, ...) end
function findings:warning(place, text, ...) self:add("warning", place, text, ...) end

-- A line each.
function findings:lines()
  local lines = {}
  for i, entry in ipairs(self) do lines[i] = entry.text end
  return lines
end

-- The names of a list as a sentence has them: "1, 2 or 4".
function findings.enumerate(list, word)
  local texts = {}
  for i, entry in ipairs(list) do texts[i] = tostring(entry) end
  if #texts < 2 then return texts[1] or "" end
  return table.concat(texts, ", ", 1, #texts - 1) .. " " .. word .. " " .. texts[#texts]
end

return findings
