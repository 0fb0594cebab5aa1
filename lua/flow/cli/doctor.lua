-- cli/doctor.lua: flowlua doctor: what this installation can do, and why the rest is missing.

local flow = require "flow"
local native = require "flow.ffi"

local function first_match(path, pattern)
  local file = io.open(path, "r")
  if not file then return nil end
  for line in file:lines() do
    local found = line:match(pattern)
    if found then
      file:close()
      return found
    end
  end
  file:close()
end

-- One line for a plugin: the libraries it brings along, or why it is not there and what to install.
local function plugin_state(index)
  local libraries = native.out("const char")
  if native.C.flow_plugin_libraries(index, libraries) ~= 0 then return native.string(native.C.flow_last_error()) end
  return ("%s: %s"):format(native.string(native.C.flow_plugin_purpose(index)), native.string(libraries[0]))
end

return function()
  local lines = {}
  local function say(name, value) lines[#lines + 1] = ("%-12s %s"):format(name, value) end
  say("flowlua", flow.version)
  say("library", native.path)
  say("modules", (package.searchpath("flow", package.path) or "?"):gsub("/init%.lua$", ""))
  say("LuaJIT", jit.version .. " (" .. jit.os .. " " .. jit.arch .. (jit.status() and "" or ", compiler off") .. ")")
  say("processor", first_match("/proc/cpuinfo", "^model name%s*:%s*(.+)$") or "unknown")
  say("kernels", flow.isa() .. " (FLOW_ISA pins another one)")
  say("threads", ("%d"):format(flow.config.get_threads()))
  say("devices", table.concat(flow.config.list_devices(), ", "))
  local check = flow.tensor { { 1, 2 }, { 3, 4 } }:matmul(flow.eye(2)):sum():item()
  say("self-test", check == 10 and "a matrix product is right" or ("a matrix product is WRONG: %g instead of 10"):format(check))
  lines[#lines + 1] = ""
  for index = 0, native.C.flow_plugin_count() - 1 do
    say(native.string(native.C.flow_plugin_name(index)), plugin_state(index))
  end
  print(table.concat(lines, "\n"))
  return check == 10 and 0 or 1
end
