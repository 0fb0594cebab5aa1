-- scopes.lua: tapes, traces and scopes (of a strategy, of a device, of a dtype policy) belong to the coroutine that opened them. Others
-- that run while it has yielded neither see them nor add to them; a coroutine that ends by an error, or is never resumed, leaves nothing
-- open. A coroutine that is created within a scope does not belong to it.
--
--   local own = scopes.own()              the running coroutine's table, in which each module keeps its own stack
--   local before = scopes.enter(own, f)   it opens something; scopes.leave(own, before) when that is closed
--
-- The library has one stack for each (flow_scopes), and is told which one counts: by the functions of native.C that take the context.
-- They look for the running coroutine only while some coroutine has something open.

local scopes = {}

local running = coroutine.running
local MAIN = {}       -- stands for the main coroutine, which has no other name

-- What exists once per Lua state: hosts unload and reload modules. Nothing here keeps a coroutine alive.
function scopes.new_state()
  return {
    of = setmetatable({}, { __mode = "k" }),            -- by coroutine
    current = setmetatable({}, { __mode = "v" }),       -- [1]: whose stack the library has
    open = 0,                                           -- coroutines that have something open
    device = false,                                     -- number of the one where a coroutine begins, if it is not the host
    lost = false,                                       -- one of them was collected: count again
  }
end

-- Nothing of these depends on what is open, and some of them run in the hot loops.
local INDEPENDENT = { "^flow_instance_", "^flow_profile_", "^flow_iterator_", "^flow_interrupt", "^flow_preempt" }

-- Whether a function of the library takes the context but does not look at what is open.
local function is_independent(name)
  for _, pattern in ipairs(INDEPENDENT) do
    if name:find(pattern) then return true end
  end
  return false
end

-- Returns what modules call as native.C: the functions of the library. declaration_of(name): its declaration (cdef/functions.lua), or nil;
-- declare(name) makes one known; new_handle(when_lost): a flow_scopes that calls when_lost() when it is collected.
function scopes.install(state, library, declaration_of, declare, context, new_handle)
  local of, current = state.of, state.current

  -- The running coroutine's table, made when it is first asked for. depth: how many scopes it has open; handle: its flow_scopes, nil of the
  -- main coroutine and of those that never opened one; other fields are those of modules.
  function scopes.own()
    local key = running() or MAIN
    local own = of[key]
    if own and own.depth > 0 and key ~= MAIN then own = require "flow.scopes.lost"(state, key, library, context) end
    if not own then
      own = { depth = 0 }
      of[key] = own
    end
    return own
  end

  -- false: no coroutine has anything open.
  function scopes.any_open() return state.open > 0 end

  function scopes.set_default_device(number) state.device = number end

  -- The library takes the stack of the running coroutine, which gets one when it first comes here; the main coroutine has the library's own
  -- (handle nil). Does nothing if it has that stack already.
  local function switch()
    local key = running() or MAIN
    if current[1] == key then return end
    local own = scopes.own()
    if key ~= MAIN and not own.handle then
      own.handle = new_handle(function() state.lost = true end)
      library.flow_scopes_enter(context, own.handle)
      if state.device then library.flow_context_set_device(context, state.device) end
    else
      library.flow_scopes_enter(context, own.handle)
    end
    current[1] = key
    if state.lost then
      local open = 0
      for _, other in pairs(of) do open = open + (other.depth > 0 and 1 or 0) end
      state.open, state.lost = open, false
    end
  end

  -- Ctrl-C may raise between any two instructions: the count may then be too high, which only costs time, but never too low.
  function scopes.enter(own, opened)
    local before = own.depth
    if before == 0 then state.open, own.opened = state.open + 1, opened end
    own.depth = before + 1
    return before
  end

  function scopes.leave(own, before)
    if own.depth <= before then return end
    own.depth = before
    if before == 0 then state.open = state.open - 1 end
  end

  -- The function of the library, called for the running coroutine.
  local function follow(f)
    return function(...)
      if state.open > 0 then switch() end
      return f(...)
    end
  end

  return setmetatable({}, { __index = function(C, name)
    local declaration = declaration_of(name)
    if declaration then declare(name) end
    local value = library[name]
    if declaration and declaration:find("%([const ]*flow_context %*[,)]") and not is_independent(name) then value = follow(value) end
    C[name] = value
    return value
  end })
end

return scopes
