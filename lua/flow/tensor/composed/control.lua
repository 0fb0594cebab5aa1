-- control.lua: conditions and loops over tensors. Eager functions take the branch, or the number of rounds, that the values say. In a
-- traced function a condition that is a tensor computes all branches and selects one result. A loop with a known number of rounds is
-- written out, or, with flow.scan, one loop of the plan; a loop that ends by the value of a tensor needs maximum_iterations.

local errors = require "flow.errors"
local names = require "flow.names"
local native = require "flow.ffi"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local raise = errors.raise
local loops = require "flow.tensor.loops"
local ops, create, operand = tools.ops, tools.create, tools.operand

local function is_list(x) return type(x) == "table" and not getmetatable(x) end

local NESTED = "a list of tensors"

local function map_below(depth, f, x, ...)
  if not is_list(x) then return f(x, ...) end
  local result = {}
  depth = errors.deeper(NESTED, depth)
  for key, entry in names.ordered(x) do
    local others = {}
    for i = 1, select("#", ...) do
      local other = (select(i, ...))
      if not is_list(other) or other[key] == nil then raise("the structures of two results differ: %s is in one only", tostring(key)) end
      others[i] = other[key]
    end
    result[key] = map_below(depth, f, entry, unpack(others))
  end
  return result
end

-- f on each tensor of nested lists, of which several may go side by side.
local function map_lists(f, x, ...) return map_below(0, f, x, ...) end

-- Appends the tensors of nested lists to `list`, in the order of their keys; returns a function that gives the lists with others in their
-- places.
local function flatten(x, list, depth)
  if not is_list(x) then
    list[#list + 1] = x
    local at = #list
    return function(values) return x ~= nil and values[at] or nil end
  end
  local keys, parts = names.keys(x), {}
  depth = errors.deeper(NESTED, depth)
  for i, key in ipairs(keys) do parts[i] = flatten(x[key], list, depth) end
  return function(values)
    local result = {}
    for i, key in ipairs(keys) do result[key] = parts[i](values) end
    return result
  end
end

-- Some tensor of a nested list, for the length of an axis that all of them have.
local function first_of(x)
  local depth
  while is_list(x) do
    depth = errors.deeper(NESTED, depth)
    local _, entry = next(x)
    if entry == nil then raise("a list of tensors is empty") end
    x = entry
  end
  return operand(x, "map")
end

-- Whether a condition holds: nil if that is known only when a plan runs.
local function truth(x)
  if type(x) == "boolean" then return x end
  if type(x) == "number" then return x ~= 0 end
  x = operand(x, "cond")
  if tensor.is_symbolic(x) then return nil end
  local value = x:item()
  return value == true or type(value) == "number" and value ~= 0
end

---- choices ------------------------------------------------------------------------------------------------------------------------

-- true_fn() if the condition holds, else false_fn(): a tensor, a list, or several values.
create("cond", "condition, true_fn: callable, false_fn: callable", function(condition, true_fn, false_fn)
  local holds = truth(condition)
  if holds ~= nil then return (holds and true_fn or false_fn)() end
  local a, b = { true_fn() }, { false_fn() }
  if #a ~= #b then raise("flow.cond: one function returns %d values, the other %d", #a, #b) end
  return unpack(map_lists(function(x, y) return ops.where(condition, x, y) end, a, b))
end)

-- The branch of this position, from 1, called with the operands; a position outside takes the first or the last one.
create("switch", "position, branches: list, operands...", function(position, branches, operands)
  local count = errors.check_list("flow.switch: the branches", branches)
  operands = is_list(operands) and operands or { operands }
  if count == 0 then raise("flow.switch: there are no branches") end
  for i = 1, count do
    if type(branches[i]) ~= "function" then raise("flow.switch: branch %d is a function, got %s", i, errors.describe(branches[i])) end
  end
  local symbolic = native.is_tensor(position) and tensor.is_symbolic(position)
  if not symbolic then
    local at = native.is_tensor(position) and position:item() or position
    if type(at) ~= "number" or at % 1 ~= 0 then
      raise("flow.switch: a position is a whole number from 1, got %s", errors.describe(position))
    end
    return branches[math.min(math.max(at, 1), count)](unpack(operands))
  end
  local result = branches[count](unpack(operands))
  for i = count - 1, 1, -1 do
    result = map_lists(function(a, b) return ops.where(ops.le(position, i), a, b) end, branches[i](unpack(operands)), result)
  end
  return result
end)

---- loops --------------------------------------------------------------------------------------------------------------------------

-- The variables of a loop that ends by a tensor's value, after at most `most` rounds of a plan: once the condition does not hold, a round
-- changes nothing, so that a loop of a plan ends there.
local function bounded(condition, body, list, holds, most)
  local before = {}
  local variables_of = flatten(map_lists(function(x) return operand(x, "while_loop") end, list), before)
  local function round(states)
    local own, values = variables_of({ unpack(states, 2) }), {}
    local results = { body(unpack(own)) }
    flatten(#results == 1 and is_list(results[1]) and #own ~= 1 and results[1] or results, values)
    if #values ~= #before then raise("flow.while_loop: body returns %d tensors, there are %d variables", #values, #before) end
    for i, value in ipairs(values) do
      value = operand(value, "while_loop", before[i].dtype)
      loops.check_alike("flow.while_loop: the body", before[i], value)
      values[i] = ops.where(states[1], value, states[1 + i])
    end
    return { ops.logical_and(states[1], condition(unpack(variables_of(values)))), unpack(values) }, {}
  end
  local states = { operand(holds, "while_loop"):to "bool", unpack(before) }
  local after = loops.run_if_possible(states, {}, most, false, round, 1)
  for _ = 1, after and 0 or most do states = round(states) end
  return variables_of({ unpack(after or states, 2) })
end

-- body(variables...) while condition(variables...) holds, at most maximum_iterations times. variables: a list, or one tensor. In a trace
-- a condition without a value needs maximum_iterations. On the CPU a plan does as many rounds as the condition asks for; where loops are
-- written out, on GPUs and in ONNX files, it does that many, of which those after the end change nothing.
local LOOP = "condition: callable, body: callable, variables, maximum_iterations?: whole"
create("while_loop", LOOP, function(condition, body, variables, most)
  local single = not is_list(variables)
  local list, round = single and { variables } or variables, 0
  while not most or round < most do
    local holds = condition(unpack(list))
    local known = truth(holds)
    if known == nil and not most then
      raise("flow.while_loop: the condition has no value in a trace: give maximum_iterations, or use flow.scan, whose rounds are counted")
    end
    if known == nil then
      list = bounded(condition, body, list, holds, most - round)
      break
    end
    if not known then break end
    local results = { body(unpack(list)) }
    local in_list = #results == 1 and is_list(results[1]) and (#list ~= 1 or not is_list(list[1]))      -- body returned a list of all
    results = in_list and results[1] or results
    if table.maxn(results) ~= #list then
      raise("flow.while_loop: body returns %d tensors, there are %d variables", table.maxn(results), #list)
    end
    errors.check_list("flow.while_loop: what body returns", results)
    list = results
    round = round + 1
  end
  return single and list[1] or list
end)

-- state = body(i, state) for i = lower .. upper - 1.
create("fori_loop", "lower: integer, upper: integer, body: callable, state", function(lower, upper, body, state)
  for i = lower, upper - 1 do state = body(i, state) end
  return state
end)

-- Rows of nested lists of tensors, one by one.
local function row(xs, i)
  return map_lists(function(x) return ops.squeeze(tools.part(operand(x, "map"), 1, i, i), 1) end, xs)
end
-- The results of rounds, tensors or nested lists of one structure, as one of these with a tensor of all rounds in each place. No unpack():
-- Lua has no room for more than some thousand values of a call.
local function stacked(results)
  if #results == 0 then raise("a loop over no rows has no result: the shapes and dtypes of its outputs are unknown") end
  local first, result = results[1], {}
  if not is_list(first) then return ops.stack(results, 1) end
  for key in names.ordered(first) do
    local entries = {}
    for i, one in ipairs(results) do
      if not is_list(one) or one[key] == nil then raise("the structures of two results differ: %s is in one only", tostring(key)) end
      entries[i] = one[key]
    end
    result[key] = stacked(entries)
  end
  return result
end

-- f on each row of xs, a tensor or lists of tensors of as many rows; the results are stacked.
local function map(what)
  return function(f, xs)
    local results, rows, count = {}, {}, tools.length(first_of(xs), 1, what)
    local row_of = flatten(map_lists(function(x) return operand(x, what) end, xs), rows)
    local results_of
    local _, found = loops.run_if_possible({}, rows, count, false, function(_, own)
      local list = {}
      results_of = flatten(map_lists(function(y) return operand(y, what) end, f(row_of(own))), list)
      return {}, list
    end)
    if found then return results_of(found) end
    for i = 1, count do
      results[i] = f(row(xs, i))
      if results[i] == nil then raise("flow.%s: the function returned nil, expected a tensor", what) end
    end
    return stacked(results)
  end
end
create("map", "f: callable, xs", map "map")
create("vectorized_map", "f: callable, xs", map "vectorized_map")

-- A function that applies f, a function of single numbers, to all elements of its arguments, which broadcast.
create("vectorize", "f: callable", function(f)
  return function(...)
    local list, common = {}, nil
    for i = 1, select("#", ...) do
      list[i] = operand((select(i, ...)), "vectorize")
      common = common and common + ops.zeros_like(list[i]) or ops.zeros_like(list[i])
    end
    local dims, flat, results = tools.dims(common), {}, {}
    for i, x in ipairs(list) do flat[i] = ops.flatten(ops.broadcast_to(x, dims)) end
    for k = 1, common.size do
      local own = {}
      for i, x in ipairs(flat) do own[i] = ops.squeeze(tools.part(x, 1, k, k), 1) end
      results[k] = f(unpack(own))
    end
    return ops.reshape_raw(stacked(results), dims)
  end
end)

-- All of f's partial results along an axis: f(x1, x2), f(f(x1, x2), x3), ... f is associative and takes two tensors, or lists of them, of
-- equally many elements along the axis, and combines element by element. Pairs are combined that are 1, 2, 4, ... apart (Hillis and Steele,
-- "Data Parallel Algorithms", 1986).
create("associative_scan", "f: callable, xs, { reverse: boolean = false, axis: integer = 1; }", function(f, xs, options)
  local axis = tools.axis(first_of(xs), options.axis, "associative_scan")
  local function part(x, first, last) return map_lists(function(t) return tools.part(t, axis, first, last) end, x) end
  xs = map_lists(function(x)
    x = operand(x, "associative_scan")
    return options.reverse and ops.flip(x, axis) or x
  end, xs)
  local n, distance = tools.length(first_of(xs), axis, "associative_scan"), 1
  while distance < n do
    local combined = f(part(xs, 1, n - distance), part(xs, distance + 1, n))
    xs = map_lists(function(head, rest) return ops.concat({ head, rest }, axis) end, part(xs, 1, distance), combined)
    distance = distance * 2
  end
  return options.reverse and map_lists(function(x) return ops.flip(x, axis) end, xs) or xs
end)

---- scan ---------------------------------------------------------------------------------------------------------------------------

local function tensors_of(x) return x ~= nil and map_lists(function(entry) return operand(entry, "scan") end, x) or nil end

-- Nested lists in which each list that is rows of numbers is a tensor.
local function rows_of(x, depth)
  if not is_list(x) then return x end
  local first, down = x, depth
  while is_list(first) do first, down = first[1], errors.deeper(NESTED, down) end
  if type(first) == "number" or type(first) == "boolean" then return operand(x, "scan") end
  local result = {}
  depth = errors.deeper(NESTED, depth)
  for key, entry in names.ordered(x) do result[key] = rows_of(entry, depth) end
  return result
end

-- How many rounds: the rows of all tensors of xs, or `length`.
local function rounds_of(xs, length)
  local list, rounds = {}, length
  if xs ~= nil then flatten(xs, list) end
  for _, x in ipairs(list) do
    if #tensor.raw_shape(x) == 0 then raise("flow.scan: xs holds a single number, which has no rows to loop over") end
    local rows = tools.length(x, 1, "scan")
    if rounds and rows ~= rounds then
      raise("flow.scan: xs has %d rows, %s", rows, length and ("length is %d"):format(length) or ("another tensor of it %d"):format(rounds))
    end
    rounds = rows
  end
  return rounds or raise("flow.scan: without xs it needs length, the number of rounds")
end

-- f(state, x): the next state, as tensors that are alike, and the second result; of one result both are it.
local function next_of(f, state, x)
  local function read(...)
    local count, after, y = select("#", ...), ...
    if after == nil then raise("flow.scan: f returned nothing, expected the next state, or that and a result") end
    after = map_lists(function(before, value)
      value = operand(value, "scan")
      loops.check_alike("flow.scan: f", before, value)
      return value
    end, state, after)
    if count == 1 then y = after end
    return after, tensors_of(y)
  end
  return read(f(state, x))
end

-- All rounds as one loop of the plan that is traced; nil where there is none, or they are to be written out.
local function looped(f, state, xs, rounds, reverse)
  local states, rows, others = {}, {}, {}
  local states_of, rows_of_list = flatten(state, states), flatten(xs, rows)
  local after, of_rounds = loops.run_if_possible(states, rows, rounds, reverse, function(given, x)
    local list = {}
    local following, y = next_of(f, states_of(given), xs ~= nil and rows_of_list(x) or nil)
    flatten(following, list)
    others = {}
    others.of = flatten(y, others)
    return list, others
  end)
  if not after then return nil end
  return { y = #others > 0 and others.of(of_rounds) or nil, state = states_of(after) }
end

-- f(state, row) -> state, result for each row of xs, the last one first with reverse; returns the results, stacked in the rows' order, or
-- nil where f gives none, and the last state. xs: a tensor, a nested list of them with equally many rows, or nil: `length` rounds. Inside
-- of a trace it becomes a loop of the plan, unless that is not possible or unroll is set.
local function scan(f, state, xs, length, reverse, unroll)
  state, xs = tensors_of(state), tensors_of(xs)
  local rounds, results = rounds_of(xs, length), {}
  local found = not unroll and looped(f, state, xs, rounds, reverse)
  if found then return found.y, found.state end
  for k = 1, rounds do
    local i = reverse and rounds + 1 - k or k
    state, results[i] = next_of(f, state, xs ~= nil and row(xs, i) or nil)
  end
  if rounds == 0 then      -- what f would give, none of it
    local zeros = xs ~= nil and map_lists(function(x) return tools.filled(x, { unpack(tools.dims(x), 2) }, 0) end, xs) or nil
    local _, y = next_of(f, state, zeros)
    return y ~= nil and map_lists(function(t) return tools.filled(t, { 0, unpack(tools.dims(t)) }, 0) end, y) or nil, state
  end
  return results[1] ~= nil and stacked(results) or nil, state
end

-- A loop that carries a state along: state, y = f(state, x) for each row x of xs, the first axis of a tensor or of all tensors of nested
-- lists. Returns the results y, stacked as rows, and the last state, a tensor or nested lists; f that returns the state alone gives the
-- states as results. Without xs there are `length` rounds; reverse: from the last row on. jax.lax.scan, with the results first. In a trace
-- f is called once and the rounds are a loop of the plan; with unroll, and where f writes variables, every round is written out instead.
create("scan", "f: callable, init, xs?, length?: whole, reverse: boolean = false, unroll?", function(f, init, xs, length, reverse, unroll)
  if init == nil then raise("flow.scan needs a state to begin with") end
  xs = rows_of(xs)
  local list = {}
  local lists_of, apply = flatten({ init = init, xs = xs }, list), nil
  for _, x in ipairs(list) do
    local metatable = type(x) == "table" and getmetatable(x)
    apply = apply or metatable and metatable.__apply
  end
  unroll = unroll == true or type(unroll) == "number" and unroll > 1
  if not apply then return scan(f, init, xs, length, reverse, unroll) end
  local results_of      -- on symbolic tensors: one operation of the model
  local results = apply(function(values)
    local given, flat = lists_of(values), {}
    local ys, state = scan(f, given.init, given.xs, length, reverse, unroll)
    results_of = flatten({ ys = ys, state = state }, flat)
    return flat
  end, list)
  local found = results_of(results)
  return found.ys, found.state
end)

---- derivatives --------------------------------------------------------------------------------------------------------------------

-- f(primals...) and its derivative in the direction of the tangents, both lists: the gradient, for u, of what backpropagating u gives
-- times the tangents.
create("jvp", "f: callable, primals: list, tangents: list", function(f, primals, tangents)
  local tape_of = require("flow.tensor.tape").GradientTape
  local inputs, directions = {}, {}
  for i = 1, #primals do
    inputs[i] = tools.floats(primals[i], "jvp")
    directions[i] = operand(tangents[i], "jvp", inputs[i].dtype):to(inputs[i].dtype)
  end
  local outer, result, weight = tape_of(), nil, nil
  local product = outer:record(function()
    local inner = tape_of()
    inner:watch(inputs)
    result = inner:record(function() return f(unpack(inputs)) end)
    weight = tools.filled(result, tools.dims(result), 0)
    outer:watch(weight)
    local sum
    for i, g in ipairs(inner:gradient(result, inputs, weight, "zero")) do
      local own = ops.sum(g * directions[i])
      sum = sum and sum + own or own
    end
    return sum
  end)
  return result, outer:gradient(product, weight, nil, "zero")
end)
