--- Runs single ops for the specs of the back end: inputs by a formula, outputs, gradients and comparisons.
--
-- A case is a table of spec/backend/cases.lua:
--   op, name        the op, and what is special about the case
--   inputs          list of { dims..., low =, high =, round =, dtype =, classes = }; a dim of -1 is the batch. Values are
--                   uniform in [low, high) (default -1, 1), whole numbers with round, labels from 0 with classes; dtype is
--                   that of the run unless it is named
--   attributes      table, or function(rows, dtype): rows is negative in a trace; see flow_attributes in flow.h
--   prepare         (optional) function(inputs, rows, dtype): the op's inputs out of the formula's
--   run             (optional) function(inputs, rows, dtype): list of outputs; default: the op itself
local native = require "flow.ffi"
local flow = require "flow"
local support = require "spec.support.init"
local sequence = require "spec.support.sequence"
require "spec.support.precision"

local C = native.C
local backend = { ROWS = 7, FEW = 4 }     -- no first dimension of an input without rows may be one of these

---- records of ops.def --------------------------------------------------------------------------------------------------

local bools, numbers = { "predicate", "compare" }, { "same", "broadcast" }
local families = {
  NUMBERS = { shapes = numbers, floats = true }, FLOATS = { shapes = numbers, floats = true }, CONDITION = { shapes = bools },
  LOGICAL = { shapes = bools }, GRADIENT = { shapes = numbers, floats = true }, FLOAT_PART = { shapes = numbers, floats = true },
}

--- Flags of every op as ops.def has them: { [name] = { kind = "MAP", gradient = boolean, VIA_FLOAT = true, ... } }.
function backend.records()
  local records = {}
  local file = assert(io.open(support.root .. "core/ops/ops.def"))
  local text = file:read("*a"):gsub(",\n +", ", ")          -- a record each line
  file:close()
  for line in text:gmatch("[^\n]+") do
    local name, rest = line:match("^FLOW_OP%((%w+),%s*(.*)$")
    if not name then name, rest = line:match("^FLOW_OP%(([%w_]+),%s*(.*)$") end
    local family, short, more = line:match("^FLOW_([%u_]+)%(([%w_]+),%s*(.*)$")
    if family ~= "OP" and families[family] then
      local fields = {}
      for field in more:gmatch("([^,]+),") do fields[#fields + 1] = (field:gsub("^%s+", "")) end
      local record, of = { kind = "MAP", STRIDED = true }, families[family]
      record.shape = of.shapes[tonumber(fields[1])]
      record.gradient = of.floats and fields[3] ~= "NONE"
      record.VIA_FLOAT, record.TO_FLOAT = of.floats, family:find "^FLOAT" ~= nil
      record.PROMOTE = fields[1] == "2"
      records[short] = record
    elseif name or family == "REDUCTION" then
      local fields = {}
      rest = name and rest or "TAKES(1), GIVES(1), MAP(1, ALL), STRIDED | " .. more
      for field in rest:gsub("%b()", ""):gmatch("([^,]+),") do fields[#fields + 1] = (field:gsub("^%s+", "")) end
      local none = fields[6] == "NONE" or fields[6] == "unsupported" or fields[6] == "quantized"
      local record = { kind = fields[3], shape = fields[5], gradient = not none }
      for flag in fields[4]:gmatch("[%u_]+") do record[flag] = true end
      records[name or short] = record
    end
  end
  return records
end

---- tensors -----------------------------------------------------------------------------------------------------------------

local function count_of(dims)
  local count = 1
  for _, dim in ipairs(dims) do count = count * dim end
  return count
end

--- A float64 tensor of values that float32 holds: low + u * (high - low), u the same sequence in [0, 1) for a seed.
function backend.uniform(dims, seed, low, high, round)
  local count = count_of(dims)
  local values = native.array("double", count)
  sequence(values, count, seed * 668265263 + 12345, function(u)
    local value = low + u * (high - low)
    return round and math.floor(value + 0.5) or value
  end)
  local t = flow.zeros(dims, { dtype = "float64" })
  native.check(C.flow_tensor_write(t.p, values, count))
  return t:to("float32"):to("float64")
end

local function seed_of(text)
  local seed = 7
  for i = 1, #text do seed = (seed * 31 + text:byte(i)) % 65521 end
  return seed
end

local function dims_of(input, rows)
  local dims = {}
  for i, dim in ipairs(input) do dims[i] = dim < 0 and rows or dim end
  return dims
end

function backend.title(case)
  return case.name and case.op .. " " .. case.name or case.op
end

--- Whether an input of the case carries the batch.
function backend.batched(case)
  for _, input in ipairs(case.inputs) do
    for _, dim in ipairs(input) do
      if dim < 0 then return true end
    end
  end
  return false
end

--- Rows that make a case large enough for the team's threads to share it.
function backend.many_rows(case)
  local widest = 1
  for _, input in ipairs(case.inputs) do
    local count, carries = 1, false
    for _, dim in ipairs(input) do
      if dim < 0 then carries = true else count = count * dim end
    end
    if carries then widest = math.max(widest, count) end
  end
  return math.min(3000, math.max(backend.ROWS, math.ceil(80000 / widest)))
end

--- The case's inputs for a batch of `rows`; fixed dtypes apart, they have `dtype`.
function backend.inputs(case, rows, dtype)
  local list, seed = {}, seed_of(backend.title(case))
  for i, input in ipairs(case.inputs) do
    local low, high = input.low or -1, input.high or 1
    local dims = dims_of(input, rows)
    if input.classes then
      list[i] = (backend.uniform(dims, seed + i, 0, input.classes):floor()):to(input.dtype or "int32")
    else
      list[i] = backend.uniform(dims, seed + i, low, high, input.round):to(input.dtype or dtype)
    end
  end
  return list
end

--- Rows first .. last of inputs that carry rows, as tensors of their own.
function backend.rows(case, inputs, first, last)
  local list = {}
  for i, t in ipairs(inputs) do
    list[i] = t
    for axis, dim in ipairs(case.inputs[i]) do
      if dim < 0 then
        local ranges = {}
        for a = 1, #case.inputs[i] do ranges[a] = a == axis and { first, last } or {} end
        list[i] = list[i][ranges]:copy()
      end
    end
  end
  return list
end

--- The same values in memory of another order: "columns" (axes reversed) or "gaps" (every second element of each axis).
function backend.strided(t, how)
  local dims = t.shape
  local rank = #dims
  if rank == 0 then return t end
  local backing, strides, offset, stride = {}, {}, 0, 1
  for i = 1, rank do backing[i] = how == "gaps" and 2 * dims[i] + 1 or dims[i] end
  local first, last, step = rank, 1, -1
  if how == "columns" then first, last, step = 1, rank, 1 end
  for i = first, last, step do
    strides[i] = how == "gaps" and 2 * stride or stride
    if how == "gaps" and dims[i] > 0 then offset = offset + stride end
    stride = stride * backing[i]
  end
  local memory = flow.full({ stride }, t.dtype:find("float") and 0 / 0 or 1, { dtype = t.dtype })
  local out, sizes, steps = native.out("flow_tensor"), (native.dims(dims)), (native.dims(strides))
  native.check(C.flow_tensor_view(memory.p, rank, sizes, steps, offset, out))
  local view = native.tensor(out[0])
  native.check(C.flow_tensor_copy(view.p, t.p))
  return view
end

---- running an op -------------------------------------------------------------------------------------------------------------

local function set_attributes(into, values)
  for member, fields in pairs(values) do
    for name, value in pairs(fields) do
      if type(value) == "table" then
        for i = 1, #value do into[member][name][i - 1] = value[i] end
      else
        into[member][name] = value
      end
    end
  end
  return into
end

--- All outputs of an op.
function backend.apply(name, inputs, attributes)
  local op = C.flow_op_find(name)
  local outputs = native.out("flow_tensor", 16)
  local list, count = native.pointers(inputs)
  native.try(C.flow_apply, native.context, op, list, count, set_attributes(native.attributes(), attributes or {}), outputs)
  local results = {}
  for i = 1, C.flow_op_outputs(op) do results[i] = native.tensor(outputs[i - 1]) end
  return results
end

--- The outputs of a case for these inputs.
function backend.run(case, inputs, rows, dtype)
  if case.run then return case.run(inputs, rows, dtype) end
  local attributes = case.attributes
  if type(attributes) == "function" then attributes = attributes(rows, dtype) end
  return backend.apply(case.op, case.prepare and case.prepare(inputs, rows, dtype) or inputs, attributes)
end

local records

--- Whether gradients of the case are checked: its op has a rule, and the case does not opt out.
function backend.differentiable(case)
  records = records or backend.records()
  return records[case.op].gradient and case.gradient ~= false
end

--- Positions of the inputs that the case is differentiated by.
function backend.sources(case)
  local positions = {}
  for i, input in ipairs(case.inputs) do
    if not input.dtype and not input.classes then positions[#positions + 1] = i end
  end
  return positions
end

--- The sum of the outputs, each element with its own weight; weights: a cache, so that all runs have the same.
local function weighted(case, outputs, weights)
  local total
  for i = 1, case.all_outputs and #outputs or 1 do
    local dtype = outputs[i].dtype
    weights[i] = weights[i] or backend.uniform(outputs[i].shape, 100 + i, 0.5, 1.5)
    local part = (outputs[i] * weights[i]:to(dtype)):sum()
    total = total and total + part or part
  end
  return total
end

--- Gradients of a weighted sum of the outputs by backend.sources, nil where there is none; and a function that gives the
--- sum for the inputs as they are then.
function backend.gradients(case, inputs, rows, dtype)
  local tape, sources, weights = flow.GradientTape(), {}, {}
  for _, position in ipairs(backend.sources(case)) do sources[#sources + 1] = inputs[position] end
  tape:watch(sources)
  local function loss() return weighted(case, backend.run(case, inputs, rows, dtype), weights) end
  local gradients = tape:gradient(tape:record(loss), sources)
  tape:close()
  return gradients, function() return loss():item() end
end

---- comparing ---------------------------------------------------------------------------------------------------------------------

local function read(t)
  local count = count_of(t.shape)
  local values = native.array("double", count)
  native.check(C.flow_tensor_read(t.p, values, count))
  return values, count
end

--- Fails unless shapes agree and |actual - expected| <= tolerance * max(|expected|, its mean over the tensor) everywhere.
function backend.near(expected, actual, tolerance, what)
  if table.concat(expected.shape, ",") ~= table.concat(actual.shape, ",") then
    error(("%s: shape {%s}, expected {%s}"):format(what, table.concat(actual.shape, ", "), table.concat(expected.shape, ", ")), 2)
  end
  local e, count = read(expected)
  local a, sum = read(actual), 0
  for i = 0, count - 1 do
    if e[i] - e[i] == 0 then sum = sum + math.abs(e[i]) end
  end
  local floor = sum / math.max(count, 1)
  for i = 0, count - 1 do
    local same, finite = a[i] == e[i] or (a[i] ~= a[i] and e[i] ~= e[i]), e[i] - e[i] == 0
    if not same and not (finite and math.abs(a[i] - e[i]) <= tolerance * math.max(math.abs(e[i]), floor)) then
      error(("%s: element %d of %d is %.10g, expected %.10g; relative difference %.2g, allowed %.2g"):format(what, i + 1, count, a[i],
        e[i], math.abs(a[i] - e[i]) / math.max(math.abs(e[i]), floor), tolerance), 2)
    end
  end
end

--- Fails unless dtypes, shapes and every bit agree.
function backend.identical(expected, actual, what)
  if expected.dtype ~= actual.dtype then error(("%s: dtype %s, expected %s"):format(what, actual.dtype, expected.dtype), 2) end
  backend.near(expected, actual, 0, what)
  local a, b = expected:to("cpu"):contiguous(), actual:to("cpu"):contiguous()
  local bytes = count_of(a.shape) * C.flow_dtype_size(native.dtypes[a.dtype])
  if bytes > 0 and native.string(C.flow_tensor_data(a.p), bytes) ~= native.string(C.flow_tensor_data(b.p), bytes) then
    error(what .. ": equal numbers, but other bits (the sign of a zero or the bits of a NaN)", 2)
  end
end

--- Calls compare(expected[i], actual[i], ...) for two lists that may have holes.
function backend.each(compare, expected, actual, count, what, ...)
  for i = 1, count do
    local label = ("%s %d"):format(what, i)
    if (expected[i] == nil) ~= (actual[i] == nil) then error(label .. ": there in one run only", 2) end
    if expected[i] ~= nil then
      if compare == backend.near then compare(expected[i], actual[i], (...), label) else compare(expected[i], actual[i], label) end
    end
  end
end

-- check(threads) with one, two and three threads, which have to give the same bits. The caller resets the number:
-- finally(function() flow.config.set_threads(0) end).
function backend.by_threads(check)
  for threads = 1, 3 do
    flow.config.set_threads(threads)
    check(threads)
  end
end

return backend
