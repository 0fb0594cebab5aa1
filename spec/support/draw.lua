--- draw(state, from, to): the next whole number of a sequence that follows from state.number, 1 to 2147483646 at first, which it changes
--- (Park and Miller's generator, "minimal standard"). Not for numbers of tensors: flow.random makes those.
return function(state, from, to)
  state.number = (state.number * 16807) % 2147483647
  return from + state.number % (to - from + 1)
end
