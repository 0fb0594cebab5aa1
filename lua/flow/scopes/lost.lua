-- lost.lua: whether a coroutine still is in the call that opened its scopes. nginx runs later requests in the coroutines of requests
-- that it has ended anywhere (lua_resetthread), as on ngx.exit in a callback: the next one must not go on with the tapes and strategies of
-- the one before. The table of scopes.own() has in `opened` the function that is the first argument of that call.
local debug = require("flow.host").debug
local getlocal, getinfo = debug.getlocal, debug.getinfo

local function is_on_stack(f)
  if not getlocal or not getinfo then return true end      -- nobody can tell
  for level = 3, math.huge do
    if not getinfo(level, "l") then return false end
    local _, value = getlocal(level, 1)
    if rawequal(value, f) then return true end
  end
end

-- The running coroutine's table; nil after its scopes were lost: then they are thrown away, and the main coroutine's count. The library
-- frees them with their handle.
return function(state, key, library, context)
  local own = state.of[key]
  if is_on_stack(own.opened) then return own end
  state.of[key], state.open = nil, state.open - 1
  library.flow_scopes_enter(context, nil)
  state.current[1] = false
  return nil
end
