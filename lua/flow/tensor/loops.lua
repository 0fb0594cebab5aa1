-- loops.lua: loops of a plan: a function that is traced once and runs for every row, in C. What goes round by round in Lua stands on it:
-- flow.scan, flow.while_loop, RNN, TimeDistributed.

local errors = require "flow.errors"
local native = require "flow.ffi"
local scopes = require "flow.scopes"
local tensor = require "flow.tensor"

local C, check = native.C, native.check
local context = native.context
local loops = {}

-- Raises unless a state stays alike; what: the function that made it.
function loops.check_alike(what, before, after)
  local was, is = tensor.shape_text(tensor.raw_shape(before)), tensor.shape_text(tensor.raw_shape(after))
  if was == is and before.dtype == after.dtype then return end
  errors.raise("%s made a state of %s %s of one of %s %s: it must stay alike; begin with a state that is so", what, after.dtype, is,
    before.dtype, was)
end

-- The depths of traces that are rounds of loops, in the running coroutine.
local function bodies_of()
  local own = scopes.own()
  own.bodies = own.bodies or {}
  return own.bodies
end

local function tensors_of(pointers, first, last)
  local list = {}
  for i = first, last do list[#list + 1] = native.tensor(pointers[i - 1]) end
  return list
end

-- f(states, rows) for each row of the tensors in the list `rows`, whose first axis is that of the rounds; it returns the lists of the next
-- states, which are like those before, and of other results. Returns the lists of the last states and of the others, stacked in the order
-- of the rows. reverse: from the last row on. gate: which state is a bool that says whether a round does something; once it is false
-- rounds are left out, so f must give back the states that it got, and the loop has no other results.
-- nil if f writes variables or adds losses: then nothing has happened, and the rounds are to be
-- written out.
function loops.run(states, rows, rounds, reverse, f, gate)
  local inputs = #states + #rows
  local given, written = native.out("flow_tensor", math.max(inputs, 1)), native.array("int", 1)
  local bodies, depth = bodies_of(), C.flow_trace_depth(context) + 1
  return native.between(function() bodies[depth] = true end, function() bodies[depth] = nil end, native.while_tracing, function()
    local first, second = native.pointers(states), native.pointers(rows)
    check(C.flow_loop_begin(context, first, #states, second, #rows, rounds, given))
  end, function()
    if gate then check(C.flow_loop_gate(context, gate - 1)) end
    local following, others = f(tensors_of(given, 1, #states), tensors_of(given, #states + 1, inputs))
    local results = {}
    for i, t in ipairs(following) do results[i] = t end
    for i, t in ipairs(others) do results[#following + i] = t end
    local out = native.out("flow_tensor", math.max(#results, 1))
    local pointers, count = native.pointers(results)
    check(C.flow_loop_end(context, pointers, count, rounds, reverse and 1 or 0, out, written))
    if written[0] ~= 0 then return nil end
    return tensors_of(out, 1, #following), tensors_of(out, #following + 1, count)
  end)
end

-- Something that is traced now is wanted outside of it. If a round of a loop is traced, its rounds are written out in place of a loop, and
-- what was kept is of no use. Returns whether a round of a loop is traced.
function loops.write_out()
  local own = scopes.own()
  C.flow_loop_write_out(context)
  return own.bodies ~= nil and own.bodies[C.flow_trace_depth(context)] or false
end

-- The same, but nil where nothing is traced, or one round or none is to be done: then they are done one by one, too.
function loops.run_if_possible(states, rows, rounds, reverse, f, gate)
  if rounds < 2 or C.flow_trace_depth(context) == 0 then return nil end
  return loops.run(states, rows, rounds, reverse, f, gate)
end

return loops
