--- sequence.lua: numbers that every machine and generate.py make alike: sequence(into, count, state, value) fills `into`, a cdata array of
--- `count`, with value(u), where u is a sequence of doubles in [0, 1) that follows from `state`.
local bit = require "bit"

return function(into, count, state, value)
  state = state % 4294967296
  for i = 0, count - 1 do
    state = (state + 2654435761) % 4294967296
    local x = bit.tobit(state)
    x = bit.bxor(x, bit.lshift(x, 13))
    x = bit.bxor(x, bit.rshift(x, 17))
    x = bit.bxor(x, bit.lshift(x, 5))
    into[i] = value(x % 4294967296 / 4294967296)
  end
end
