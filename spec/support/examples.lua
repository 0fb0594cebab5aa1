-- examples.lua: runs the examples of the reference in the current folder, and prints a line for each that fails or prints something else
-- than it shows: `luajit spec/support/examples.lua [NAME...]`, with the environment of the specs.
local flow = require "flow"
local help = flow.help
local reference = require "flow.reference"

-- Returns what an example printed, or nil and what went wrong.
local function run(item)
  local printed = {}
  local environment = setmetatable({ flow = flow, layers = flow.layers, help = help, print = function(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    printed[#printed + 1] = table.concat(parts, "\t")
  end }, { __index = _G })
  local chunk, message = loadstring(item.example, "=example")
  if not chunk then return nil, message end
  local ok, problem = pcall(setfenv(chunk, environment))
  if not ok then return nil, tostring(problem) end
  return table.concat(printed, "\n")
end

local wanted = {}
for _, name in ipairs(arg) do wanted[name] = true end

local count = 0
flow.log.sink = function() end
for _, item in ipairs(reference.all()) do
  if item.example and (#arg == 0 or wanted[item.name]) then
    count = count + 1
    local printed, problem = run(item)
    local shown = {}
    for text in (item.example .. "\n"):gmatch("%-%-> (.-)\n") do shown[#shown + 1] = text end
    if not printed then
      print(item.name .. ": " .. problem)
    elseif #shown > 0 and printed ~= table.concat(shown, "\n") then
      print(("%s: printed %q, shows %q"):format(item.name, printed, table.concat(shown, "\n")))
    end
  end
end
print(count .. " examples ran")
