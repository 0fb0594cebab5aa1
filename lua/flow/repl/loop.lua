-- loop.lua: entries of the prompt. An expression's values are printed (a trailing ; silences them) and kept as _; an entry goes on over
-- several lines until it is complete; ?name and help(name) tell what there is to know; an error or Ctrl-C returns to the prompt.
--
-- run() is the loop: it reads a line, compile() says whether it is complete together with those before it, and evaluate() runs it in the
-- session's environment (session.lua) and shows the values (show.lua). Other front ends use compile() and evaluate() without run().

local native = require "flow.ffi"
local log = require "flow.log"
local traceback = require "flow.traceback"
local show = require "flow.repl.show"
local style = require "flow.repl.style"
local complete = require "flow.repl.complete"
local new_session = require "flow.repl.session"

local repl = { show = show, complete = complete.words }      -- flow's init.lua sets repl.flow, the prompt's flow

-- Compiles input. Returns the chunk and whether its values are to be printed, or nil, whether more lines are needed, and the error. Input
-- that is an expression is one, also where it is a statement, too: a call returns what the function returns. More lines are needed where
-- the compiler complains about the end of the text, as a statement or, such as "1 +" or "{ 1,", as an expression.
function repl.compile(text)
  text = text:gsub("^%s*=", "")      -- = 5, as the program lua has it
  local silent = text:match("^(.*);%s*$")
  local expression, unfinished = loadstring("return " .. (silent or text), "=stdin")
  if expression then return expression, not silent end
  local chunk, message = loadstring(text, "=stdin")
  if chunk then return chunk, not silent end      -- it has its own return statement
  local ends = "near '<eof>'"
  return nil, message:find(ends, 1, true) ~= nil or not silent and unfinished:find(ends, 1, true) ~= nil, message
end

-- The handler of an entry's errors: the text that is shown, with the lines that led to it up to evaluate() itself.
local function explain(message)
  if type(message) ~= "string" then
    local metatable = getmetatable(message)
    return metatable and metatable.__tostring and tostring(message) or "an error that is not text: " .. show(message)
  end
  return message .. require("flow.errors.hints").of(message) .. traceback.text(message, 2, repl.evaluate)
end

-- Runs one complete input; write(text) receives what is to be shown: its values if `prints`, or its error. Returns whether it went well;
-- raises only what write raises for an error's text. environment: of its globals, by default _G. The first value becomes the global _. What
-- was typed is interpreted: compiled loops do not notice Ctrl-C. Functions that it calls are compiled as ever.
function repl.evaluate(chunk, prints, write, environment)
  jit.off(chunk, true)
  if environment then setfenv(chunk, environment) end
  log.latest = nil
  local function print_values(...)
    local count = select("#", ...)
    if count > 0 then _G._ = (...) end
    if prints and count > 0 and not (count == 1 and log.latest ~= nil and (...) == log.latest) then      -- a plot is drawn once
      local parts = {}
      for i = 1, count do parts[i] = show((select(i, ...))) end
      write(table.concat(parts, "\t"))
    end
  end
  -- Values are shown inside of the protected call: a __tostring of the user's may raise, and Ctrl-C may come while a large one is read.
  local ok, message = xpcall(function() print_values(chunk()) end, explain)
  if not ok then write(style.of("error", tostring(message))) end
  return ok
end

-- Shows what ?text asks for, or why there is nothing.
local function ask(text, session, write)
  local value
  if text:find("^[%a_][%w_]*$") then value = rawget(_G, text) end
  local ok, message = pcall(session.environment.help, (value == nil or type(value) == "string") and (text ~= "" and text or nil) or value)
  if not ok then write(style.of("error", (tostring(message):gsub("^[^\n]-:%d+: ", "")))) end
end

local BANNER = "Ctrl-C interrupts, Ctrl-D leaves, an expression shows its value, ?name tells what there is to know of a name."

-- A session until the input ends. host: { arm, isatty } as the program gives them, both optional; read(prompt) and write(text) for other
-- front ends.
function repl.run(host, banner)
  local write = host.write or function(text) io.write(text, "\n") io.flush() end
  local editor = not host.read and require "flow.repl.editor"
  local terminal = host.isatty and host.isatty(0)
  style.open(terminal and host.isatty(1) or false)
  complete.flow = repl.flow
  require("flow.reference").flow = repl.flow
  if rawget(_G, "flow") == nil then _G.flow = repl.flow end
  local session = new_session(write)
  local read = host.read
  local pending = ""
  if not read then
    if terminal then
      editor.open(function(word, before)
        return complete.words(word, (pending == "" and "" or pending .. "\n") .. before, session.names())
      end)
      read = editor.read
    else
      read = function() return io.read("*l") end
    end
  end
  if terminal and banner then write(banner .. "\n" .. BANNER) end

  while true do
    if host.arm then host.arm() end
    local ok, line = pcall(function()
      local line = read(pending == "" and "> " or ">> ")
      return line      -- in two steps: Ctrl-C while it reads is an error of the next instruction, which is to come in here
    end)
    if not ok then                      -- Ctrl-C at the prompt drops what was typed
      pending = ""
      write("")
    elseif line == nil then
      if native.interrupted() then
        pending = ""
        write("")
      else
        break
      end
    else
      local text = pending == "" and line or pending .. "\n" .. line
      if pending == "" and text:find("^%s*%?") then
        if terminal and editor then editor.remember(text) end
        ask(text:match("^%s*%?%s*(.-)%s*$"), session, write)
      elseif text:find("%S") then
        local chunk, flag, message = repl.compile(text)
        if chunk then
          if terminal and editor then editor.remember(text) end
          if host.arm then host.arm() end
          repl.evaluate(chunk, flag, write, session.environment)
          session.note(text)
          pending = ""
        elseif flag then
          pending = text
        else
          write(style.of("error", message))
          pending = ""
        end
      end
    end
  end
  if terminal and editor then editor.close() end
end

return repl
