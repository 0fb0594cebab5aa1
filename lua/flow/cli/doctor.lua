-- cli/doctor.lua: flowlua doctor: what this installation can do, and why the rest is missing.

local flow = require "flow"
local native = require "flow.ffi"

local USAGE = [[
Usage: flowlua doctor

Prints what this installation can do: version, processor, devices, plugins, and why one is missing. The exit code is 0 if a product of
matrices is right.]]

-- The first match of a pattern in a line of a file; nil: there is none, or the file cannot be read.
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

-- LuaJITs of September 2021 to April 2022 cut a pointer to 32 bits in some compiled loops over pairs() (LuaJIT's issue 829), and
-- all were called beta3 until 2023. OpenResty's branch, told by a function that it adds, is of January 2023 in Debian 12.
local function may_miscompile()
  return jit.version == "LuaJIT 2.1.0-beta3" and jit.arch == "x64" and not jit.prngstate
end

return function(_, arguments)
  local options = require "flow.cli.options"("doctor", USAGE, {}, arguments or {})
  if options[1] then
    require("flow.errors").raise("doctor takes no arguments, got %q; flowlua doctor --help shows what there is", options[1])
  end
  local lines = {}
  local function say(name, value) lines[#lines + 1] = ("%-12s %s"):format(name, value) end
  say("flowlua", flow.version)
  say("library", native.path)
  say("modules", (package.searchpath("flow", package.path) or "?"):gsub("/init%.lua$", ""))
  say("LuaJIT", jit.version .. " (" .. jit.os .. " " .. jit.arch .. (jit.status() and "" or ", compiler off") .. ")")
  if may_miscompile() then
    say("", "may miscompile loops over pairs(), if it is one of before April 2022: install a later one (in Debian 12: luajit2)")
  end
  say("processor", first_match("/proc/cpuinfo", "^model name%s*:%s*(.+)$") or "unknown")
  say("kernels", flow.isa() .. " (FLOW_ISA pins another one)")
  say("threads", ("%d"):format(flow.config.get_threads()))
  say("devices", table.concat(flow.config.list_devices(), ", "))
  for _, line in ipairs(require("flow.cli.environment").unknown()) do say("environment", line) end
  local check = flow.tensor { { 1, 2 }, { 3, 4 } }:matmul(flow.eye(2)):sum():item()
  say("self-test", check == 10 and "a matrix product is right" or ("a matrix product is WRONG: %g instead of 10"):format(check))
  local yaml = require("flow.jobs.yaml").available()
  say("YAML", yaml and "libyaml, for the files of flowlua submit" or "not read: libyaml is not installed (Debian: libyaml-0-2); JSON is")
  lines[#lines + 1] = ""
  for index = 0, native.C.flow_plugin_count() - 1 do
    say(native.string(native.C.flow_plugin_name(index)), plugin_state(index))
  end
  print(table.concat(lines, "\n"))
  return check == 10 and 0 or 1
end
