-- cli/main.lua: the command line of the flowlua program. bindings/cli/main.c calls it with what only C can do (host.arm,
-- host.take_termination, host.watch, host.isatty) and the arguments; it returns the exit code.
--
-- The room: the program flowlua. May use: train, reference, repl, jobs, init.

local native = require "flow.ffi"
local at_exit = require "flow.at_exit"
local host_io = require "flow.host"
local flow = require "flow"

-- In this program `flow` is there without require: for -e and the prompt. A host's globals are never touched.
_G.flow = flow

local function version()
  return ("flowlua %s (%s, kernels: %s)"):format(flow.version, jit.version, flow.isa())
end

local function complain(message)
  io.stderr:write("flowlua: " .. message .. "\n")        -- one write: several tasks may share it
end

-- Whether an error is flow.args' way to end a script in order.
local function is_exit(failure)
  local args = package.loaded["flow.command_line"]
  return args ~= nil and getmetatable(failure) == args.Exit
end

-- The handler of xpcall: { text = the message, trace = the message with the lines that led to it }, or an Exit of flow.args as it is.
local function traceback(message)
  if type(message) == "table" and is_exit(message) then return message end
  local metatable = debug.getmetatable(message)
  if type(message) == "table" and not (metatable and metatable.__tostring) then
    message = "an error that is not text: table"
  else
    local shown, text = pcall(tostring, message)
    message = shown and type(text) == "string" and text
      or ("an error that cannot be shown: %s, whose __tostring fails"):format(type(message))
  end
  -- A module cannot be loaded where no more files can be opened.
  local hinted, hints = pcall(require, "flow.errors.hints")
  if hinted then message = message .. hints.of(message) end
  local loaded, lines = pcall(require, "flow.traceback")
  return { text = message, trace = loaded and message .. lines.text(message, 2) or message }
end

local PREEMPTED = 128 + 15      -- the exit code after SIGTERM, as a shell counts
local registry = debug.getregistry()
local failure_text      -- of the last call that failed

-- Calls f(...) with Ctrl-C and SIGTERM taken. Returns nil, or the exit code with which the program ends: that of flow.args' way out, 143
-- after SIGTERM, 130 after Ctrl-C, else 1; what went wrong was written to the standard error then, and failure_text is set.
local function call(host, f, ...)
  host.arm()
  host.take_termination(true)
  local arguments = { n = select("#", ...), ... }
  local ok, failure = xpcall(function() f(unpack(arguments, 1, arguments.n)) end, traceback)
  host.take_termination(false)
  if ok then return nil end
  if type(failure) ~= "table" then      -- the handler failed, too, or was not called: there is no memory for it
    local text = tostring(failure)
    if text == "not enough memory" then text = host.no_memory end
    failure = { text = text, trace = text }
  end
  if is_exit(failure) then
    print(failure.text)
    return failure.code
  end
  failure_text = failure.text
  local interrupted, preempted = failure.text == registry["flowlua.interruption"], native.preempted()
  complain(not interrupted and failure.trace or preempted and "ended by SIGTERM" or "interrupted")
  return preempted and PREEMPTED or interrupted and 130 or 1
end

-- Runs a loaded chunk as a script: global arg as in lua, its entries as `...`.
local function run_script(host, chunk, message, name, arguments)
  if not chunk then
    complain(message)
    return 1
  end
  local list = { [0] = name }
  for i, value in ipairs(arguments) do list[i] = value end
  _G.arg = list
  return call(host, chunk, unpack(list))
end

local function rest(list, first)
  local result = {}
  for i = first, #list do result[#result + 1] = list[i] end
  return result
end

-- That a module was not found; where it could be, LUA_PATH says.
local function not_found(name)
  local file = name:gsub("%.", "/")
  local text = "module %q was not found: there is neither %s.lua nor %s/init.lua in this folder or in those of LUA_PATH"
  return text:format(name, file, file)
end

-- flowlua -m NAME: runs the file that require would load as a script; returns nil, or the exit code.
local function run_module(host, name, arguments)
  local path = package.searchpath(name, package.path)
  if not path then
    complain(not_found(name))
    return 1
  end
  local chunk, failure = loadfile(path)
  return run_script(host, chunk, failure, path, arguments)
end

-- A command in a file of this name, flow/cli/NAME.lua, which is given the host's functions and the arguments. Its exit code; 1 if the build
-- lacks it.
local function run_command(host, name, arguments)
  if not package.searchpath("flow.cli." .. name, package.path) then
    complain(("the command %q is not part of this build"):format(name))
    return 1
  end
  local code
  local program = require "flow.cli.usage"
  return call(host, function() code = require("flow.cli." .. name)(host, arguments, program) end) or code or 0
end

-- The prompt, until its end; the exit code is 0 then, whatever the lines did.
local function interactive(host)
  flow.repl.run(host, version())
  registry["flowlua.cut"] = nil      -- who was there has seen it
  return 0
end

-- Options with a value, written -eCODE or -e CODE.
local takes_value = { e = "code", l = "a module", m = "a module" }

-- What the options -m, -l and -e do with their value, which is at position i of the list. Each returns an exit code if the program is to
-- end with it.
local valued = {}
function valued.m(host, value, list, i, prompt)
  local code = run_module(host, value, rest(list, i + 1))
  if code or not prompt then return code or 0 end
  return interactive(host)
end
function valued.l(host, value)
  if not (package.loaded[value] or package.preload[value] or package.searchpath(value, package.path)
    or package.searchpath(value, package.cpath)) then
    complain(not_found(value))
    return 1
  end
  return call(host, function() _G[value] = require(value) end)
end
function valued.e(host, value, list)
  _G.arg = list
  local chunk, message = loadstring(value, "=(command line)")
  if chunk then return call(host, chunk) end
  complain(message)
  return 1
end

-- Does what the options say, in their order, as lua and luajit take them. Returns the exit code if the program is to end with it, else nil,
-- the position after the options, whether -i asks for the prompt, and whether an option ran something.
local function run_options(host, list)
  local i, prompt, ran = 1, false, false
  while list[i] and list[i]:match("^%-.") do
    local option = list[i]
    local letter, value = option:match("^%-(%l)(.*)$")
    if option == "--" then return nil, i + 1, prompt, ran end
    if option == "--help" or option == "-h" then
      print(require("flow.cli.usage").usage)
      return 0
    elseif option == "--version" or option == "-v" then
      print(version())
      ran = true
    elseif option == "-i" then
      prompt = true
    elseif letter and takes_value[letter] then
      if value == "" then
        i = i + 1
        value = list[i]
      end
      if not value then
        complain(("-%s needs %s"):format(letter, takes_value[letter]))
        return 1
      end
      local code = valued[letter](host, value, list, i, prompt)
      if code then return code end
      ran = true
    else
      complain(("unknown option %s; flowlua --help shows what there is"):format(option))
      return 1
    end
    i = i + 1
  end
  return nil, i, prompt, ran
end

-- Options, then a command, a script, the standard input or the prompt. Returns the exit code: the first thing that fails ends the run, and
-- -i asks for the prompt after all that went well.
local function run(host, list)
  io.stdout:setvbuf("line")
  native.arm_interrupt = host.arm
  host.watch(tonumber(native.cast("intptr_t", native.context)))
  local code, i, prompt, ran = run_options(host, list)
  if code then return code end

  local script = list[i]
  if script == nil then
    if not ran and not prompt and not host.isatty(0) then
      local chunk, message = loadstring(io.read("*a"), "=stdin")
      return run_script(host, chunk, message, "-", {}) or 0
    end
    if ran and not prompt then return 0 end
    return interactive(host)
  elseif i == 1 and require("flow.cli.usage").commands[script] then
    return run_command(host, script, rest(list, 2))
  elseif script == "-" then
    local chunk, message = loadstring(io.read("*a"), "=stdin")
    code = run_script(host, chunk, message, "-", rest(list, i + 1))
  else
    local chunk, message = loadfile(script)
    if not chunk and i == 1 and not host_io.readable(script) then
      local near = flow.errors.nearest(script, require("flow.cli.usage").commands)
      message = message .. (near and ("; did you mean the command %s?"):format(near) or "")
    end
    code = run_script(host, chunk, message, script, rest(list, i + 1))
  end
  if code or not prompt then return code or 0 end
  return interactive(host)
end

-- 130 (143) where an interrupt (SIGTERM) cut a fit short and the script came to its end all the same: what it has saved is not the result
-- of a whole training. A script for which that is a success calls os.exit(0).
local function code_at_end(code)
  return code == 0 and (native.preempted() and PREEMPTED or registry["flowlua.cut"] and 130) or code
end

-- What is to be done at the end of the program is done also when a script ends it by os.exit.
local exit = os.exit
rawset(os, "exit", function(code, close)
  if code == nil then code = code_at_end(0) end
  local orderly = code == nil or code == true or code == 0
  orderly = orderly or code == 130 and registry["flowlua.cut"]
  at_exit.run(orderly, not orderly and "ended by os.exit(" .. tostring(code) .. ")" or nil)
  exit(code, close)
end)

return function(host, list)
  local code = run(host, list)
  at_exit.run(code == 0, failure_text)
  return code_at_end(code)
end
