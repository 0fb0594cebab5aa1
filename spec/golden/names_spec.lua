-- names_spec.lua: which of Keras' public names (names.lua) are below flow.keras, module by module: none gets lost.
-- flowlua spec/golden/names_spec.lua prints the table with what is missing.
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)names_spec%.lua$")
local names = dofile(folder .. "names.lua")

-- The names that flow.keras lacks. All others are there: a class or a function whose line in a table was forgotten is named here.
local MISSING = {
  ["callbacks"] = "CallbackList OrbaxCheckpoint RemoteMonitor",
  ["initializers"] = "STFT STFTInitializer stft",
  ["layers"] = "FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper Wrapper",
  ["ops"] = "eig polar view_as_complex view_as_real",
  ["ops.linalg"] = "eig",
  ["ops.nn"] = "polar",
  ["optimizers"] = "MultiOptimizer OptimizerMap",
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
      local all, _, missing = count(path)
      assert.is_true(all > 0)
      assert.equal(MISSING[path] or "", table.concat(missing, " "))
    end)
  end
end)
