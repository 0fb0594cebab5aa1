-- spaces.lua: numbers in a row between two ends: the same distance, or the same factor, from each to the next. The ends are numbers or
-- tensors; between tensors with axes the numbers stand along a new axis. And ones on a diagonal.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local ops = tools.ops
local spaces = {}

local C, check = native.C, native.check
local one = native.out("flow_tensor")

-- `num` values from number start to number stop, float32 unless options.dtype says otherwise. placed(t, options): t on options.device.
local function of_numbers(start, stop, num, options, placed)
  local dtype = native.dtype(options.dtype or "float32")
  for _, number in ipairs { start, stop } do tensor.check_holds(dtype, number, "flow.linspace") end
  local gaps = options.endpoint == false and num or num - 1
  local step = gaps > 0 and (stop - start) / gaps or 0
  native.try(C.flow_tensor_arange, dtype, start, step, num, one)
  local t = native.tensor(one[0])
  if gaps > 0 and options.endpoint ~= false then      -- exactly stop, whatever the sum of the steps is rounded to
    check(C.flow_tensor_view_at(t.p, num - 1, one))
    tensor.fill(native.tensor(one[0]), stop):close()
  end
  if options.retstep then return placed(t, options), step end
  return placed(t, options)
end

-- `num` values between start and stop. Of tensors, which broadcast, they stand along a new axis options.axis; options.endpoint = false
-- leaves stop out. Returns them, of options.dtype or that of the difference (at least float32), and with options.retstep the step.
function spaces.linspace(start, stop, num, options, placed)
  if type(start) == "number" and type(stop) == "number" then return of_numbers(start, stop, num, options, placed) end
  start, stop = tools.pair(start, stop, "linspace", true)
  local dtype = options.dtype or start.dtype
  start, stop = start:to "float64", stop:to "float64"
  local last, gaps = options.endpoint == false, options.endpoint == false and num or num - 1
  local width = stop - start
  local axis, rank = options.axis or 1, #tools.dims(width) + 1
  axis = ops.axis_from(axis, rank, "flow.linspace") + 1
  local shape = {}
  for i = 1, rank do shape[i] = i == axis and num or 1 end
  local share = tensor.linspace(0, 1, num, { dtype = "float64", endpoint = not last }):reshape(shape)
  local values = ops.expand_dims(start, axis) + ops.expand_dims(width, axis) * share
  values = tensor.tensor(values, { dtype = dtype, device = options.device })
  if options.retstep then return values, (gaps > 0 and width / gaps or width * (0 / 0)):to(dtype) end
  return values
end

-- n rows and m columns with ones on diagonal k. new_by(options, dtype, dims): a tensor of zeros.
function spaces.eye(n, m, k, options, new_by)
  tensor.check_dims("flow.eye", { n, m })
  local t = new_by(options, "float32", { n, m })
  local diagonal = math.min(n + math.min(k, 0), m - math.max(k, 0))
  if diagonal <= 0 then return t end
  local from = k >= 0 and k or -k * m
  check(C.flow_tensor_view(t.p, 1, (native.dims { diagonal }), (native.dims { m + 1 }), from, one))
  tensor.fill(native.tensor(one[0]), 1):close()
  return t
end

local SPACE = "start: scalar|list, stop: scalar|list, num: whole = 50, { endpoint: boolean = true%s, dtype?, axis: integer = 1; device? }"
local function space(start, stop, num, options)
  return tensor.linspace(start, stop, num, { dtype = "float64", endpoint = options.endpoint, axis = options.axis })
end
-- x, floats, of options.dtype, else of the ends' dtype, at least float32.
local function placed(x, start, stop, options)
  local dtype = options.dtype or tools.pair(tools.operand(start, "logspace"), tools.operand(stop, "logspace"), "logspace", true).dtype
  return tensor.tensor(x, { dtype = dtype, device = options.device })
end

-- base^start to base^stop.
tools.create("logspace", SPACE:format ", base: number = 10", function(start, stop, num, options)
  return placed(ops.exp(space(start, stop, num, options) * math.log(options.base)), start, stop, options)
end)

-- From start to stop, each the same factor after the one before.
tools.create("geomspace", SPACE:format "", function(start, stop, num, options)
  local first, last = tools.operand(start, "geomspace", "float64"):to "float64", tools.operand(stop, "geomspace", "float64"):to "float64"
  local fit = ops.all(ops.gt(first * last, 0))
  if not tensor.is_symbolic(fit) and not fit:item() then
    errors.raise("flow.geomspace: start and stop have one sign and are not 0, got %s and %s", errors.describe(start),
      errors.describe(stop))
  end
  local sizes = ops.exp(space(ops.log(ops.abs(first)), ops.log(ops.abs(last)), num, options))
  local axis = ops.axis_from(options.axis or 1, #tools.dims(sizes), "flow.geomspace") + 1
  return placed(sizes * ops.expand_dims(ops.sign(first + ops.zeros_like(last)), axis), start, stop, options)
end)

return spaces
