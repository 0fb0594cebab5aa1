-- losses.lua: flow.losses: loss(y_true, y_pred [, sample_weight]) gives a number as a rank 0 tensor.
--   flow.losses.SparseCategoricalCrossentropy { from_logits = true }     an object
--   flow.losses.mean_squared_error(y_true, y_pred)                       values per sample
--
-- A loss that is called reduces its values per sample: reduce(values * weights). A loss of the library's table is its number there (index)
-- and a flow_arguments (options); one of batch_losses.lua is a record and a plain table; a class of a script has call(). Where a prediction
-- carries a mask (_keras_mask) the mask is part of the weights.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local names = require "flow.names"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.replica_ops"
local extend = require "flow.user_class"
local extended = require "flow.extended"
local option_fields = require "flow.classes.option_fields"

local C, raise = native.C, errors.raise
local context = native.context

local by_name
local losses = signature.module("flow.losses", {}, function(_, name) return by_name(name) end)
local internal = signature.internal(losses)
signature.names_of(losses, function()
  local list = names.of_records(C.flow_loss_name, C.flow_loss_find)
  for _, record in ipairs(require "flow.train.batch_losses") do
    list[#list + 1], list[#list + 2] = record.name, record.class_name
  end
  return list
end)
local Loss = object.class("Loss")
local out = native.out("flow_tensor")

local REDUCTIONS = { sum_over_batch_size = true, mean = true, mean_with_sample_weight = true, sum = true, none = true }

-- Finds a loss by its class name or its function's name: its index in the library's table, its record in batch_losses.lua, or nil.
local function lookup(name)
  local index = type(name) == "string" and C.flow_loss_find(name) or -1
  if index >= 0 then return index end
  for _, record in ipairs(require "flow.train.batch_losses") do
    if name == record.name or name == record.class_name then return record end
  end
end

-- The function's name of what lookup gives.
local function name_of(loss) return type(loss) == "table" and loss.name or native.string(C.flow_loss_name(loss)) end

-- The values per sample of a loss, a tensor without the last axis of y_pred in most cases. index: what lookup gives. options: a
-- flow_arguments, or a table for a loss that is written in Lua, or nil.
local function values_of(index, options, y_true, y_pred)
  if y_pred == nil or y_true == nil then      -- else operand() says of what there is, what it is
    raise("%s takes (y_true, y_pred), %s is nil", name_of(index), y_true == nil and "y_true" or "y_pred")
  end
  y_pred = ops.operand(y_pred, nil, "y_pred")
  y_true = ops.operand(y_true, nil, "y_true")
  if type(index) == "table" then return index.values(options or {}, y_true, y_pred) end
  native.try(C.flow_loss_values, context, index, options, native.pointer(y_true), native.pointer(y_pred), out)
  return native.tensor(out[0])
end

-- Gives both the same rank if they differ by a last axis of length 1, as Keras does: the axis is removed, or added if the other has only
-- one axis. what: who asks, for the error if both then do not broadcast; without it their shapes are not compared.
function internal.same_rank(a, b, what)
  local given_a, given_b = a, b
  local function fit(longer, shorter)
    if tensor.raw_shape(longer)[longer.rank] ~= 1 then return longer, shorter end
    if shorter.rank == 1 then return longer, shorter:expand_dims(-1) end
    return longer:squeeze(-1), shorter
  end
  if a.rank == b.rank + 1 then return fit(a, b) end
  if b.rank == a.rank + 1 then
    b, a = fit(b, a)
  end
  local m, n = tensor.raw_shape(a), tensor.raw_shape(b)
  for i = 0, what and math.min(#m, #n) - 1 or -1 do
    local p, q = m[#m - i], n[#n - i]
    if p ~= q and p > 1 and q > 1 then
      raise("%s: y_true %s and y_pred %s do not fit: their dimensions, last to first, must be equal or 1", what,
        tensor.shape_text(tensor.raw_shape(given_a)), tensor.shape_text(tensor.raw_shape(given_b)))
    end
  end
  return a, b
end

-- Reshapes weights to the rank of the values. Weights with the first axes of the values, {n} or {n, t}, hold for all further axes; others
-- broadcast as in NumPy, with by_row to the values without their last axis.
function internal.align_weights(weights, values, by_row)
  weights = ops.operand(weights, "float32", "sample_weight")
  local shape = tensor.raw_shape(values)
  if weights.rank == values.rank + 1 and weights.rank > 1 and tensor.raw_shape(weights)[weights.rank] == 1 then
    weights = weights:squeeze(-1)
  end
  local own = tensor.raw_shape(weights)
  if weights.rank > values.rank then
    raise("sample_weight %s has more dimensions than the values %s", tensor.shape_text(own), tensor.shape_text(shape))
  end
  local leading = true
  for axis = 1, weights.rank do leading = leading and (own[axis] == shape[axis] or own[axis] == 1) end
  if not leading and by_row and weights.rank < values.rank then return weights:expand_dims(-1) end
  for _ = weights.rank + 1, leading and values.rank or 0 do weights = weights:expand_dims(-1) end
  return weights
end

-- The weights of values whose y_pred has a mask: the given ones, or 1, times 0 where the mask excludes a value. mean: the other weights are
-- scaled so that a mean is over these values only. counted: a mask of the values themselves, or nil.
function internal.mask_weights(y_pred, weights, mean, counted)
  local mask = native.is_tensor(y_pred) and y_pred._keras_mask or counted
  if not mask then return weights end
  if counted and mask ~= counted then mask = ops.logical_and(mask, counted) end
  native.try(C.flow_loss_mask_weights, context, native.pointer(mask), mean and 1 or 0, out)
  local kept = native.tensor(out[0])
  if weights == nil then return kept end
  kept, weights = losses.same_rank(kept, ops.operand(weights, "float32", "sample_weight"))
  if weights.rank < kept.rank then return kept * losses.align_weights(weights, kept) end
  return weights * losses.align_weights(kept, weights)
end

-- sum(values * weights) / number of values, or, with "mean_with_sample_weight", / sum(weights), which are those of all replicas that share
-- the batch, and as they were given: a weight that holds for several values counts once.
local function reduce(values, weights, reduction)
  if weights ~= nil then
    -- As in Keras: one value gets the shape of weights {n}, values {n} that of weights {n, 1}, values {n, t, 1} that of weights {n, t}.
    local own, shape = ops.operand(weights, "float32", "sample_weight"), tensor.raw_shape(values)
    if values.rank == 0 and own.rank == 1 and own.shape[1] == 1 then own = own:squeeze(-1) end
    if values.rank == 0 then values, weights = values * ops.ones_like(own), own end
    if values.rank == 1 and own.rank == 2 and tensor.raw_shape(own)[2] == 1 then values = values:expand_dims(-1) end
    if own.rank >= 2 and values.rank == own.rank + 1 and shape[#shape] == 1 then values = values:squeeze(-1) end
    weights = losses.align_weights(weights, values):to(values.dtype)
    local of_weights, of_values, larger = tensor.raw_shape(weights), tensor.raw_shape(values), false
    for axis = 1, #of_weights do larger = larger or of_weights[#of_weights + 1 - axis] ~= 1 and of_values[#of_values + 1 - axis] == 1 end
    if larger then values = values * ops.ones_like(weights) end      -- a value with several weights counts once for each
  end
  local one = weights and values.rank == 0 and weights.rank == 0      -- in Keras a single value is not divided by its weight
  if reduction == "none" or not reduction then return weights and values * weights or values end
  if reduction == "sum" then return (weights and values * weights or values):sum() end
  -- flow_loss_reduce divides by the number of values; the factor makes that sum(weights).
  if reduction == "mean_with_sample_weight" and weights and not one then
    weights = weights * ops.divide_no_nan(ops.all_reduce(ops.ones_like(values):sum()), ops.all_reduce(weights:sum()))
  end
  native.try(C.flow_loss_reduce, context, native.pointer(values), weights and native.pointer(weights) or nil, out)
  return native.tensor(out[0])
end

-- values_of_labels(y_true), where labels that are `ignored` are 0 for it, since they need not be classes, and their values are 0
-- afterwards, whatever they were; and which values have another label. axis: that of the classes, from 1 or from the end.
function internal.without_label(ignored, axis, y_true, values_of_labels)
  local valid = y_true:ne(ignored)
  local values = values_of_labels(ops.where(valid, y_true, 0))
  if valid.rank == values.rank + 1 then valid = valid:squeeze(axis) end
  return ops.where(valid, values, 0), valid
end

-- A loss's values, and, if it has an ignore_class, which of them count.
local function values_and_valid(self, y_true, y_pred)
  local function values(labels) return values_of(self.index, self.options, labels, y_pred) end
  local ignored = rawget(self, "ignore_class")
  if not ignored then return values(y_true) end
  return losses.without_label(ignored, self._class_axis, ops.operand(y_true, nil, "y_true"), values)
end

-- As in Keras, values whose label is ignore_class are excluded, also from the divisor of a mean: the other weights are scaled. Replicas
-- that share a batch sum the number of these values. Returns values and weights.
local function without_class(self, y_true, y_pred, weights)
  local mask = y_pred._keras_mask
  local values, valid = values_and_valid(self, y_true, y_pred)
  if mask then valid = ops.logical_and(valid, mask) end
  valid = valid:to(values.dtype)
  weights = weights == nil and valid or losses.align_weights(weights, values) * valid
  if self.reduction == "sum_over_batch_size" or self.reduction == "mean" then      -- 1e-7: Keras' epsilon
    local total, counted = ops.all_reduce(ops.ones_like(valid):sum()), ops.all_reduce(valid:sum())
    weights = weights * (total / (counted + 1e-7))
  end
  return values, weights
end

local CALL = signature.entry("loss", function(y_true, y_pred, sample_weight) return y_true, y_pred, sample_weight end, false)

local function weighted(self, y_true, y_pred, weights)
  if rawget(self, "ignore_class") then
    local values, counts = without_class(self, y_true, y_pred, weights)
    return reduce(values, counts, self.reduction)
  end
  local values, index = ops.operand(self:call(y_true, y_pred), nil, self.name), rawget(self, "index")
  local counted = type(index) == "table" and index.counted and index.counted(values) or nil
  weights = losses.mask_weights(y_pred, weights, self.reduction == "sum_over_batch_size" or self.reduction == "mean", counted)
  return reduce(values, weights, self.reduction)
end

local DTYPES = { float32 = true, float64 = true, float16 = true, bfloat16 = true }

-- The type that a loss computes in: given by name or by a policy; nil: float32.
local function dtype_of(class_name, given)
  local dtype = type(given) == "table" and rawget(given, "compute_dtype") or given
  if given == nil or DTYPES[dtype] then return dtype end
  raise("%s: dtype is float32, float64, float16, bfloat16 or a policy, got %s", class_name, errors.describe(given))
end

-- The tensor in that type, with its mask. Labels are not rounded to types of 16 bits.
local function in_dtype(x, dtype)
  if x.dtype == dtype or dtype:find "16" and not x.dtype:find "float" then return x end
  local cast, mask = x:to(dtype), x._keras_mask
  if mask then cast._keras_mask = mask end
  return cast
end

-- loss(y_true, y_pred [, sample_weight]): a scalar, or the values with reduction "none". Arguments may be given by name in one table.
function Loss:_call(y_true, y_pred, weights)
  y_true, y_pred, weights = signature.sort(CALL, y_true, y_pred, weights)
  y_true, y_pred = ops.operand(y_true, nil, "y_true"), ops.operand(y_pred, nil, "y_pred")
  local dtype = rawget(self, "_dtype") or dtype_of(self.name, rawget(self, "dtype"))      -- dtype: of a class written in Lua
  if not dtype then return weighted(self, y_true, y_pred, weights) end
  return weighted(self, in_dtype(y_true, dtype), in_dtype(y_pred, dtype), weights):to(dtype)
end

-- Values per sample; classes that extend Loss define their own.
function Loss:call(y_true, y_pred)
  return (values_and_valid(self, y_true, y_pred))
end

local NOT_IN_CONFIG = { dtype = true }

-- The arguments of its constructor, as in Keras' config: axes from 0. A class written in Lua adds its own arguments.
function Loss:get_config()
  local config = { name = self.name, reduction = self.reduction }
  for key, value in pairs(rawget(self, "config") and self.config.config or {}) do config[key] = value end
  return option_fields.complete(self, config, NOT_IN_CONFIG)
end
option_fields.install(Loss, Loss.get_config)
function Loss.fields.dtype(self) return rawget(self, "_dtype") or "float32" end

-- Makes a loss of this class from what get_config() gave.
object.static(Loss, "from_config", function(class, config)
  object.check_config(class.name, config)
  if rawget(class, "in_lua") then return class(config) end
  return losses.deserialize { class_name = class.name, config = config }
end)

local COMMON = { name = true, reduction = true, dtype = true }      -- what every class takes

-- Makes a class of losses written in Lua: its call(y_true, y_pred) returns values per sample. reduction is one of its fields.
function Loss.extend(parent, class_name)
  if extended.base(parent) ~= Loss then
    return extended.class(parent, class_name, COMMON, function(class) return object.new(class) end)
  end
  return extend(parent, class_name, function(class, name) return object.new(class, { name = name, reduction = "sum_over_batch_size" }) end)
end

-- The options of the records, in Keras' order, so that a wrong name is reported where the loss is made.
local function parameters_of(index)
  if type(index) == "table" then return index.parameters end
  local list = {}
  while C.flow_loss_argument(index, #list) ~= nil do list[#list + 1] = native.string(C.flow_loss_argument(index, #list)) end
  return list
end

-- The defaults of a record's options: { name = text }.
local function defaults_of(index)
  if type(index) == "table" then return index.defaults end
  local found = {}
  for i, parameter in ipairs(parameters_of(index)) do found[parameter] = C.flow_loss_argument_default(index, i - 1) end
  return found
end

local KINDS = { delta = "number", label_smoothing = "number", from_logits = "boolean", gamma = "number", margin = "number",
                remove_diagonal = "boolean" }

-- In Keras two of the classes have axis after name.
local AXIS_LAST = { Dice = true, Tversky = true }

-- The parameters of a class in Keras' order.
local function with_name(class_name, parameters)
  local list = { unpack(parameters) }
  table.insert(list, AXIS_LAST[class_name] and #list or #list + 1, "name")
  list[#list + 1] = "dtype"
  return list
end

-- A loss of the library's table or of batch_losses.lua. class: that of the loss, or its name; index: what lookup gives; the rest are the
-- constructor's arguments. Raises for options that Keras' class does not have, and for those of another kind.
local function make(class, index, ...)
  class = type(class) == "string" and object.class(class, Loss) or class
  local class_name = class.name
  local record, parameters = name_of(index), parameters_of(index)
  local named, known = arguments.named(class_name, with_name(class_name, parameters), #parameters + 2, ...), { name = true, dtype = true }
  for _, parameter in ipairs(parameters) do known[parameter] = true end
  errors.check_options(class_name, named, known)
  local reduction = named.reduction == nil and "sum_over_batch_size" or named.reduction or "none"      -- false: None
  if not REDUCTIONS[reduction] then
    raise("%s: reduction is %s; it is sum_over_batch_size, mean, mean_with_sample_weight, sum or none", class_name,
      errors.describe(named.reduction))
  end
  local dtype = dtype_of(class_name, named.dtype)
  for parameter, kind in pairs(KINDS) do
    if named[parameter] ~= nil and type(named[parameter]) ~= kind then
      raise("%s: %s is a %s, got %s", class_name, parameter, kind, errors.describe(named[parameter]))
    end
  end
  if named.name ~= nil and type(named.name) ~= "string" then
    raise("%s: name is a string, got %s", class_name, errors.describe(named.name))
  end
  local axis = named.axis or -1
  named.axis = arguments.zero_based(class_name, "axis", named.axis)
  local name, ignored = named.name or class_name == "Huber" and "huber_loss" or record, named.ignore_class
  if ignored ~= nil and type(ignored) ~= "number" then
    raise("%s: ignore_class is a label, a number, got %s", class_name, errors.describe(ignored))
  end
  named.reduction, named.name, named.ignore_class, named.dtype = nil, nil, nil, nil
  local options = type(index) == "table" and named or arguments.native(class_name, named)
  local config = { name = name, reduction = reduction }
  for parameter, value in pairs(named) do config[parameter] = value end
  config.ignore_class = ignored
  return object.new(class, { name = name, index = index, reduction = reduction, options = options, ignore_class = ignored,
                             _class_axis = axis, _dtype = dtype, config = { class_name = class_name, config = config } })
end

-- The functions' names of all losses.
local function all_names()
  local list = {}
  while C.flow_loss_name(#list) ~= nil do list[#list + 1] = native.string(C.flow_loss_name(#list)) end
  for _, record in ipairs(require "flow.train.batch_losses") do list[#list + 1] = record.name end
  return list
end

-- The loss that compile() was given: an object, a name, or a function(y_true, y_pred).
function losses.get(value)
  value = losses.name_of_function(value) or value      -- losses.huber is "huber"
  if object.is(value, Loss) then return value end
  if type(value) == "table" and not getmetatable(value) and type(value.class_name) == "string" then return losses.deserialize(value) end
  if type(value) == "string" then
    local index = lookup(value)
    if index then return make(value, index) end
    raise("there is no loss %q%s", value, errors.choices(value, all_names()))
  end
  if type(value) == "function" then
    names.of_function(value)      -- which a file of the model asks for, when the script's functions may have returned
    local class = object.class("Loss function", Loss)
    function class.call(_, y_true, y_pred)
      local values = value(losses.same_rank(y_true, y_pred))
      if values == nil then raise("the loss, a function(y_true, y_pred), returned nil, expected a value for each sample") end
      return values
    end
    return object.new(class, { name = "loss", reduction = "sum_over_batch_size" })
  end
  raise("a loss is an object, a name or a function(y_true, y_pred), got %s", errors.describe(value))
end

losses.Loss = Loss
internal.reduce = reduce

local names_of_functions = setmetatable({}, { __mode = "k" })

-- The name that a function of flow.losses or flow.metrics has in files, and that compile() takes in its place; nil: it is another one.
function internal.name_of_function(f) return names_of_functions[f] end

-- The function flow.losses.huber(y_true, y_pred [, options of the loss]): values for each sample. values(options, y_true, y_pred).
-- own_name: see name_of_function.
function internal.function_of(title, names_of_options, values, own_name)
  local list = {}
  for _, name in ipairs(names_of_options) do
    if name ~= "reduction" then list[#list + 1] = name end
  end
  local text = "y_true, y_pred" .. (list[1] and ", " .. table.concat(list, "?, ") .. "?" or "")
  local made = signature.guard(title, function(y_true, y_pred, ...)
    local options, ignored, axis = nil, nil, -1
    for i = 1, select("#", ...) do
      local value = (select(i, ...))
      if value ~= nil and list[i] == "ignore_class" then ignored = value
      elseif value ~= nil then
        options = options or {}
        if list[i] == "axis" then axis, value = value, arguments.zero_based(title, "axis", value) end
        options[list[i]] = value
      end
    end
    if ignored == nil then return values(options, y_true, y_pred) end
    return (losses.without_label(ignored, axis, ops.operand(y_true, nil, "y_true"), function(labels)
      return values(options, labels, y_pred)
    end))
  end, text)
  names_of_functions[made] = own_name
  return made
end

-- flow.losses.Huber(...) makes a loss; flow.losses.huber(y_true, y_pred) gives values per sample.
function by_name(name)
  local index = lookup(name)
  if not index then
    local instead = errors.elsewhere("flow.losses", name) or errors.suggestion(tostring(name), all_names())
    raise("flow.losses has no %q%s", tostring(name), instead)
  end
  local title, is_table = "flow.losses." .. name, type(index) == "table"
  local found
  if name:find("^%u") and (is_table and name == index.class_name or not is_table and name ~= name:upper()) then
    local parameters = parameters_of(index)
    found = object.class(name, Loss)
    local defaults = defaults_of(index)
    parameters = with_name(name, parameters)
    signature.of_record(found, title, parameters, #parameters, function(...) return make(found, index, ...) end, nil,
      function(i) return defaults[parameters[i + 1]] end)
  else
    local list = { unpack(is_table and index.more or {}) }
    for _, parameter in ipairs(list[1] and {} or parameters_of(index)) do list[#list + 1] = parameter end
    found = losses.function_of(title, list, function(options, y_true, y_pred)
      return values_of(index, options and not is_table and arguments.native(name, options) or options, y_true, y_pred)
    end, name_of(index))
  end
  rawset(losses, name, found)
  return found
end

return losses
