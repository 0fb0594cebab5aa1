-- holes.lua: runs the examples of the reference in the current folder, once for each list in them with nil before the list's last entry,
-- and prints a line for each that raises no error: `luajit spec/support/holes.lua`, with the environment of the specs.
local flow = require "flow"
local help = flow.help
local reference = require "flow.reference"

-- The tokens of Lua code as { text, first, last }, without comments.
local function tokens(code)
  local list, at = {}, 1
  local function token()
    for _, pattern in ipairs { "^[%a_][%w_]*", "^%d[%w.]*", "^%[%[.-%]%]" } do
      local first, last = code:find(pattern, at)
      if first then return last end
    end
    local quote, last = code:match("^[\"']", at), at
    if not quote then return at end
    repeat
      last = last + (code:sub(last, last) == "\\" and 2 or 1)
    until code:sub(last, last) == quote
    return last
  end
  while at <= #code do
    local _, blank = code:find("^%s+", at)
    if not blank then _, blank = code:find("^%-%-[^\n]*", at) end
    if not blank then
      blank = token()
      list[#list + 1] = { code:sub(at, blank), at, blank }
    end
    at = blank + 1
  end
  return list
end

local OPENS = { ["{"] = true, ["("] = true, ["["] = true, ["function"] = true, ["if"] = true, ["for"] = true, ["while"] = true }
local CLOSES = { ["}"] = true, [")"] = true, ["]"] = true, ["end"] = true }

-- The code with nil before the last entry of one of its lists, for each list: { code, list }.
local function with_holes(code)
  local found, stack = {}, {}
  for _, token in ipairs(tokens(code)) do
    local text, first, last = unpack(token)
    local top = stack[#stack]
    if CLOSES[text] then
      stack[#stack] = nil
      local entry
      for _, start in ipairs(text == "}" and top.starts or {}) do
        if not code:find("^[%a_][%w_]*%s*=[^=]", start) and not code:find("^%[", start) then entry = start end
      end
      if entry then
        found[#found + 1] = { code:sub(1, entry - 1) .. "nil, " .. code:sub(entry), (code:sub(top.at, last):gsub("\n", " ")) }
      end
    elseif top and top.text == "{" and (text == "," or text == ";") then
      top.fresh = true
    else
      if top and top.fresh then
        top.starts[#top.starts + 1] = first
        top.fresh = false
      end
      if OPENS[text] then stack[#stack + 1] = { text = text, starts = {}, fresh = text == "{", at = first } end
    end
  end
  return found
end

local environment = setmetatable({ flow = flow, layers = flow.layers, help = help, print = function(...)
  for i = 1, select("#", ...) do local _ = tostring((select(i, ...))) end
end }, { __index = _G })

local count = 0
flow.log.sink = function() end
for _, item in ipairs(reference.all()) do
  for _, variant in ipairs(item.example and with_holes(item.example) or {}) do
    count = count + 1
    local ok = pcall(setfenv(assert(loadstring(variant[1], "=example")), environment))
    if ok then print(("accepted %s: %s"):format(item.name, variant[2])) end
  end
end
print(count .. " lists tried")
