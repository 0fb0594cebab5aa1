-- loading.lua: modules of flow that are loaded from now on are loaded anew where loading them has failed: Lua's require takes one in whose
-- first run an error was raised, of a full stack or of Ctrl-C, for one that is being loaded, for ever. So they run before require knows of
-- them, while it looks for who could load them. The __index of flow requires this file before it loads a part.
-- Since require does not know of them, what asks for one while it runs, a hook or a finalizer of the host that uses flow, loads it a second
-- time: what that has made is the module for both. The collector is not stopped meanwhile: what loading leaves would cost each state 2 MB.

local debug = require("flow.host").debug
local signature = require "flow.signature"

local package, registry = rawget(_G, "package"), debug.getregistry()
local loaders = type(package) == "table" and package.loaders
local KEY = "flowlua.loading"      -- one for all copies of flow in a state: { find =, forget = what undoes what half of a module has left }

local function new()
  local own = {}
  function own.find(name)
    if not name:find("^flow%.") then return nil end
    for _, loader in ipairs(loaders) do
      local load = loader ~= own.find and loader(name)
      if type(load) == "function" then
        local ok, value = pcall(load, name)
        if not ok then
          own.forget()
          error(value, 0)
        end
        if package.loaded[name] ~= nil then value = package.loaded[name] end
        return function() return value end
      end
    end
  end
  table.insert(loaders, 1, own.find)
  return own
end

if type(loaders) == "table" then
  registry[KEY] = registry[KEY] or new()
  registry[KEY].forget = signature.pop
end
