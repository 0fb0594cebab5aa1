-- cli/launch_modules.lua: the modules of lua/flow, translated once for many tasks of this machine (bindings/cli/modules.h). Names in
-- messages and positions of errors stay those of the files.

local io = require "flow.io"

local modules = {}

local WORTH = 8      -- tasks: translating all takes as long as reading does in two of them

-- The folder that holds flow/, as require found it.
local function home()
  local path = package.searchpath("flow.cli.launch_modules", package.path)
  return path and path:match "^(.*/)flow/cli/launch_modules%.lua$"
end

-- Adds an entry "name bytes\ncode" for each file of a folder that LuaJIT can translate; files that it cannot are left out, and a task reads
-- them itself, with the message that belongs to them. prefix: the modules' name so far.
local function add(list, folder, prefix)
  for _, name in ipairs(io.listdir(folder)) do
    local path = folder .. "/" .. name
    local module = name:match "^([%w_]+)%.lua$"
    if module then
      local chunk = loadfile(path)
      local code = chunk and string.dump(chunk)
      if code then list[#list + 1] = ("%s %d\n%s"):format(module == "init" and prefix or prefix .. "." .. module, #code, code) end
    elseif io.isdir(path) then
      add(list, path, prefix .. "." .. name)
    end
  end
end

-- What modules.h describes, as a text; nil where it would not be worth it, or the files are not to be found.
function modules.translate(tasks)
  local folder, list = tasks >= WORTH and home(), {}
  if not folder or not pcall(add, list, folder .. "flow", "flow") then return nil end
  return table.concat(list)
end

return modules
