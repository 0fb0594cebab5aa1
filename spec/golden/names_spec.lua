-- names_spec.lua: how many of Keras' public names (names.lua) are below flow.keras, module by module: none gets lost.
-- flowlua spec/golden/names_spec.lua prints the table with what is missing.
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)names_spec%.lua$")
local names = dofile(folder .. "names.lua")

-- The number of names that each module has, or more.
local PRESENT = {
  ["activations"] = 31,
  ["callbacks"] = 13,
  ["constraints"] = 9,
  ["initializers"] = 36,
  ["losses"] = 46,
  ["metrics"] = 70,
  ["ops"] = 333,
  ["ops.image"] = 15,
  ["ops.linalg"] = 15,
  ["ops.nn"] = 54,
  ["ops.numpy"] = 220,
  ["optimizers"] = 17,
  ["optimizers.schedules"] = 7,
  ["random"] = 11,
  ["regularizers"] = 12,
}

local function has(path, name)
  local value = flow.keras
  for part in (path .. "." .. name):gmatch "[^.]+" do
    local ok, found = pcall(function() return value[part] end)
    if not ok or found == nil then return false end
    value = found
  end
  return true
end

-- The number of names, of those that are there, and the list of the others.
local function count(path)
  local all, present, missing = 0, 0, {}
  for name in names[path]:gmatch "%S+" do
    all = all + 1
    if has(path, name) then present = present + 1 else missing[#missing + 1] = name end
  end
  return all, present, missing
end

if not describe then
  local paths = {}
  for path in pairs(names) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local all, present, missing = count(path)
    print(("%-22s %3d of %3d   %s"):format(path, present, all, table.concat(missing, " ")))
  end
  return
end

require "spec.support.init"
describe("names of Keras", function()
  for path in pairs(names) do
    it("are in flow.keras." .. path, function()
      local all, present, missing = count(path)
      assert.is_true(all > 0)
      local text = "flow.keras.%s has %d names, it had %d; missing are %s"
      assert.is_true(present >= PRESENT[path], text:format(path, present, PRESENT[path], table.concat(missing, " ")))
    end)
  end
end)
