-- session.lua: the names of a session at the prompt: globals that are not there are errors, with the name that is near, and three helpers
-- that only the prompt has, and that a global of the same name hides: help(name), who(), time(f).

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local reference = require "flow.reference"
local show = require "flow.repl.show"
local style = require "flow.repl.style"

local C = native.C

-- A session: { environment = the table of globals of its chunks, note(text) = remembers what an entry declared as local, names() = what is
-- defined, as keys }. write(text) shows something. The environment holds nothing itself: what an entry assigns becomes a field of _G, so
-- that functions of modules see it, and what it reads is looked up in _G, then among the helpers.
return function(write)
  local session = {}
  -- By name: globals of before the session, those that it has assigned (nil is a value of theirs), locals of earlier entries, and the
  -- helpers.
  local before, assigned, locals, helpers = {}, {}, {}, {}
  for name in pairs(_G) do before[name] = true end
  before._ = true

  -- The names of all globals and helpers, as keys.
  local function known()
    local names = {}
    for _, list in ipairs { _G, helpers } do
      for name in pairs(list) do
        if type(name) == "string" then names[name] = true end
      end
    end
    return names
  end

  session.environment = setmetatable({}, {
    __index = function(_, name)
      local value = rawget(_G, name)
      if value == nil then
        local metatable = getmetatable(_G)      -- a host's own
        if type(metatable) == "table" and metatable.__index then value = _G[name] end
      end
      if value == nil then value = helpers[name] end
      if value ~= nil or assigned[name] or name == "_" then return value end
      if type(name) ~= "string" then return nil end
      if locals[name] then
        errors.raise("%s is not defined: it was local to an earlier entry; write it without local to keep it", name)
      end
      local elsewhere = errors.elsewhere("flow", name)
      local hint = elsewhere or errors.suggestion(name, known())
      if not elsewhere and hint == "" and require("flow.reference.names").of(reference.flow)[name] then
        hint = ("; flow has it: flow.%s"):format(name)
      end
      errors.raise("%s is not defined%s", name, hint)
    end,
    __newindex = function(_, name, value)
      if type(name) == "string" then assigned[name], locals[name] = true, nil end
      _G[name] = value
    end,
  })

  -- The locals that an entry declares are gone when it has run. The text is searched for the word, not parsed: one in a function or a
  -- string counts, too, which only changes what is said of a name that is not defined.
  function session.note(text)
    for list in text:gmatch("local%s+([%a_][%w_%s,]*)") do
      for name in list:gmatch("[%a_][%w_]*") do
        if name == "function" then
          name = text:match("local%s+function%s+([%a_][%w_]*)") or name
        end
        locals[name] = true
      end
    end
  end

  -- Globals of the session's, for completion.
  function session.names() return known() end

  -- Shows what there is to know of a name or a value; without one, how to begin.
  function helpers.help(what)
    write(reference.text(what, style.of))
  end

  -- Lists what the session has defined.
  function helpers.who()
    local lines, width = {}, 4
    local list = {}
    for name in pairs(_G) do
      if type(name) == "string" and not before[name] then
        list[#list + 1] = name
        width = math.max(width, #name)
      end
    end
    table.sort(list)
    for i, name in ipairs(list) do
      local value = rawget(_G, name)
      local text = native.is_tensor(value) and tostring(value):match("^[^\n]*")
        or type(value) == "string" and ("%q"):format(value:sub(1, 60))
        or (type(value) == "table" and not getmetatable(value) or type(value) == "number") and show(value):match("^[^\n]*"):sub(1, 60)
        or errors.describe(value):gsub("^an? ", "")
      lines[i] = ("%s%s  %s"):format(name, (" "):rep(width - #name), text)
    end
    write(#lines > 0 and table.concat(lines, "\n") or "nothing is defined yet: x = flow.ones { 2, 2 } defines x")
  end

  local LONG_ENOUGH = 0.2      -- seconds of all calls, and the most calls
  local MOST_CALLS = 1000

  local function seconds_text(seconds)
    if seconds < 1e-3 then return ("%.3g us"):format(seconds * 1e6) end
    if seconds < 1 then return ("%.3g ms"):format(seconds * 1e3) end
    return ("%.3g s"):format(seconds)
  end

  -- Calls f(...), again if it is quick, and says how long a call takes; returns what the first call returned.
  function helpers.time(f, ...)
    signature.check_callable("time", f)
    local began = C.flow_clock()
    local results = { n = select("#", ...), ... }
    local function call(...) return { n = select("#", ...), ... } end
    local returned = call(f(unpack(results, 1, results.n)))
    local first = C.flow_clock() - began
    local best, calls, total = first, 1, first
    while total < LONG_ENOUGH and calls < MOST_CALLS do
      began = C.flow_clock()
      f(unpack(results, 1, results.n))
      local took = C.flow_clock() - began
      best, calls, total = math.min(best, took), calls + 1, total + took
    end
    write(calls == 1 and seconds_text(first)
      or ("%s at best, %s on average, of %d calls"):format(seconds_text(best), seconds_text(total / calls), calls))
    return unpack(returned, 1, returned.n)
  end

  return session
end
