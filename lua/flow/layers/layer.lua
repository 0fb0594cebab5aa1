-- layer.lua: what every layer is in Lua. Built-in layers are C records that a handle stands for; layers written in Lua extend this
-- class with build() and call(). Both are called alike:
--
--   layer(tensor)                 runs it, eagerly or inside a trace; builds it at the first call
--   layer(symbolic)               adds a node to a functional model (symbolic.lua)
--   layer(x, { training = true }) layers called inside without the option inherit it

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local variable = require "flow.tensor.variable"
local ops = require "flow.tensor.ops"
local arguments = require "flow.arguments"
local placement = require "flow.tensor.placement"
local mixed_precision = require "flow.layers.mixed_precision"
local penalties = require "flow.layers.added_losses"
local several = require "flow.layers.several"
local scopes = require "flow.scopes"
local inside = require "flow.layers.classes.inside"
local own_build = require "flow.layers.classes.build"
local parameters = require "flow.layers.classes.parameters"

local C, check, raise = native.C, native.check, errors.raise
local takes = require("flow.signature").takes
local context, batch_shape = native.context, own_build.batch_shape

local Layer = object.class("Layer")
local out_tensor, out_layer = native.out("flow_tensor"), native.out("flow_layer")

-- Options of every layer.
local COMMON = { name = true, trainable = true, input_shape = true, dtype = true, activity_regularizer = true }
local FIELDS = { dtype = "_policy", activity_regularizer = "_activity", input_shape = "input_shape_given" }

local ACTIVATIONS = { "activation", "recurrent_activation" }

---- life -------------------------------------------------------------------------------------------------------------------

-- Fields that every layer has. options: name, trainable, dtype.
function Layer:_prepare(class_name, options)
  rawset(self, "name", names.checked(class_name, options.name) or names.auto(class_name))
  rawset(self, "_assignments", {})
  rawset(self, "_trainable", options.trainable ~= false)
  rawset(self, "_built", false)
  rawset(self, "_has_run", false)
  rawset(self, "_own", {})          -- variables made by add_weight, in order
  rawset(self, "_children", {})     -- layers assigned to fields, in order
  rawset(self, "_nodes", {})        -- calls on symbolic tensors
  rawset(self, "_handle", false)    -- flow_layer of a built-in layer
  rawset(self, "_policy", options.dtype == nil and mixed_precision.global_policy() or mixed_precision.policy(class_name, options.dtype))
  rawset(self, "_activity", options.activity_regularizer or false)
  rawset(self, "_own_choices", false)      -- of a built-in layer: see own_choices.lua
  if type(self.name) ~= "string" then raise("%s: name is a string, got %s", class_name, errors.describe(self.name)) end
  return self
end

-- Gives an object the handle of a built-in layer.
local function adopt(self, handle)
  rawset(self, "_handle", handle)
  rawset(self, "_title", self.name)      -- a name that is set is the handle's, too: layer_config.lua
  rawset(self, "name", nil)
  rawset(self, "_policy", mixed_precision.policy(self.class_name, native.string(C.flow_layer_policy(handle))))
  rawset(self, "_activity", C.flow_layer_regularizes_activity(handle) ~= 0)
end

-- A built-in layer. named: its arguments, with name, trainable and input_shape among them.
function Layer.from_record(class, named)
  local self = object.new(class)
  local input_shape = named.input_shape
  for _, name in ipairs(ACTIVATIONS) do
    if named[name] == false then named[name] = "linear" end      -- None in Python
  end
  if object.is(named.dtype, object.class_of(mixed_precision.global_policy())) then named.dtype = named.dtype.name end
  named.dtype = named.dtype or mixed_precision.global_policy().name
  require "flow.layers.classes.serialized" (named)
  local options = { name = named.name, trainable = named.trainable }
  local weights = class.name == "Embedding" and named.weights or nil      -- Keras' argument of it
  named.input_shape, named.name, named.weights = nil, nil, not weights and named.weights or nil
  local chosen = arguments.has_own_choices(named) and require("flow.layers.own_choices").take(class.name, named)
  local handle = arguments.native(class.name, named)
  self:_prepare(class.name, options)
  check(C.flow_layer_new(class.name, self.name, handle, out_layer))
  adopt(self, native.own(out_layer, C.flow_layer_release))
  rawset(self, "input_shape_given", input_shape or false)
  if chosen then require("flow.layers.own_choices").give(self, chosen) end
  if weights then require "flow.layers.set_weights" (self, native.is_tensor(weights) and { weights } or weights, { -1 }) end
  return self
end

-- A built-in layer from Keras' config as JSON; axes: as the constructor would have been given them, for adapt().
function Layer._from_json(class, config, axes)
  check(C.flow_layer_from_config(class.name, config, out_layer))
  local handle = native.own(out_layer, C.flow_layer_release)
  local self = object.new(class)
  self:_prepare(class.name, { name = native.string(C.flow_layer_name(handle)), trainable = C.flow_layer_trainable(handle) ~= 0 })
  adopt(self, handle)
  rawset(self, "input_shape_given", false)
  rawset(self, "_axes", axes or false)
  return self
end

-- Sets an option of every layer, or a field.
local function set_option(self, name, value)
  if name == "dtype" then value = mixed_precision.policy(self.class_name, value) end
  if FIELDS[name] then rawset(self, FIELDS[name], value) else self[name] = value end
end

-- A class of layers written in Lua: local Scale = Layer:extend("Scale"); function Scale:call(x) return x * self.gain end.
-- Scale(a, b, { name = "s" }) calls Scale.init(self, a, b) if there is one; without init a table of options becomes fields.
-- Of a class of the library: classes/extended.lua.
function Layer.extend(parent, class_name)
  local of_library = require("flow.layers.classes.extended").class(Layer, parent, class_name)
  if of_library then return of_library end
  return require "flow.user_class" (parent, class_name, function(class, name, options)
    local self = object.new(class):_prepare(class_name, setmetatable({ name = name }, { __index = options }))
    rawset(self, "input_shape_given", options.input_shape or false)
    return self
  end, COMMON, set_option)
end

---- building ----------------------------------------------------------------------------------------------------------------

-- Builds the library's layer. shapes: a list for each input, false for one of unknown rank.
local function build_native(self, shapes)
  local count = #shapes
  local ranks, pointers, keep = native.array("int", count), native.array("const int64_t *", count), {}
  for i = 1, count do
    local dims, rank = native.dims(shapes[i] or {})
    keep[i], pointers[i - 1], ranks[i - 1] = dims, dims, shapes[i] and rank or -1
  end
  native.keep(keep)
  native.try(C.flow_layer_build, context, self._handle, count, ranks, pointers)
end

-- Builds the layer for these input shapes unless it is built. single: build() gets the shape itself, not a list of shapes.
-- A build that fails leaves the layer unbuilt and without the weights that it had added. Of a call on several tensors: of_arguments, what
-- build() gets in their place, or named, { name =, shape = } of each input with a name, of which shapes[i] is false where it is not given.
function Layer:_ensure_built(shapes, single, of_arguments, named)
  if self._built then return end
  local built_for = {}
  for i, shape in ipairs(named or shapes) do built_for[i] = batch_shape(named and shape.shape or shape, self) end
  rawset(self, "_input_shape", single and built_for[1] or built_for)
  rawset(self, "_named_shapes", named or of_arguments and {} or false)
  if self._handle and (rawget(self, "_building") or not rawget(self, "_own_build")) then
    build_native(self, shapes)                                 -- as they are, for what an error says
    if self._own_choices then
      rawset(self, "_built", true)
      require("flow.layers.own_choices").apply(self, self._own_choices)
    end
    local lora = rawget(self, "_lora_wanted")
    if lora then
      rawset(self, "_built", true)
      require("flow.layers.kernels.lora").enable(self, lora.rank, lora.alpha)
    end
    placement.share_new(require "flow.layers.classes.paths" (self))
  else
    local own = of_arguments and self.build ~= Layer.build      -- that of all layers takes one shape, and does nothing here
    own_build.run(self, self.build, unpack(own and of_arguments or { self._input_shape }))
  end
  rawset(self, "_built", true)
  rawset(self, "_built_in", placement.current() or false)      -- where its variables were made
  if variable.awaited then variable.awaited() end
end

-- layer:build {-1, 4} makes the layer's variables now instead of at its first call. Layers written in Lua may define their own; without
-- one, a call on an input of that shape, of which nothing is computed, builds what is inside.
function Layer:build(shape)
  if not self._handle and (rawget(self, "_building") or self._built or self.call == Layer.call) then return end
  local shapes, single = require "flow.layers.classes.build_shapes" (self, shape)
  if self._handle then return self:_ensure_built(shapes, single) end
  own_build.by_call(self, shapes)
end

rawset(Layer, "wraps", { build = own_build.wrap, call = parameters.of_call })

-- A new variable of this layer: { name =, shape =, initializer = "glorot_uniform", trainable = true, regularizer =, constraint = }; shape
-- and initializer may stand before the table.
takes("shape: list = nil, initializer = 'glorot_uniform', { name: string = 'variable', trainable: boolean = true, dtype?, regularizer?, " ..
  "constraint? }")
function Layer:add_weight(shape, initializer, options)
  local dims, dtype = shape or {}, options.dtype or self._policy.variable_dtype
  local initial = require "flow.layers.initial_value" (object.title(self) .. ": add_weight", initializer, dims, dtype)
  local name, what = self.name .. "/" .. options.name, object.title(self) .. ": add_weight"
  local weight = variable.Variable(initial, { name = name, trainable = options.trainable })
  rawset(weight, "_path", inside.path(self) .. "/" .. options.name)
  local regularize = options.regularizer and penalties.regularizer(what, options.regularizer)
  if options.constraint then require("flow.layers.constraints")._attach(what, weight, options.constraint) end
  self._own[#self._own + 1] = weight      -- from here on nothing fails
  if regularize then
    rawset(self, "_regularizers", rawget(self, "_regularizers") or {})
    self._regularizers[#self._regularizers + 1] = { weight, regularize }
  end
  return weight
end

-- Adds a scalar to the loss, in call(): what the outermost call leaves there is part of model.losses until the next.
function Layer:add_loss(value) penalties.add(self, value) end

---- calling ------------------------------------------------------------------------------------------------------------------

-- What activity_regularizer makes of the outputs of the call that has just run.
local function add_activity(self, result)
  if not self._activity then return end
  if self._own_choices and self._own_choices.activity_regularizer then return penalties.add_activity(self, result) end
  local added = C.flow_layer_take_activity(self._handle)
  if added == nil then return end
  local value = native.tensor(added)
  if not rawget(self, "_activity_is_left_out") then penalties.add(self, value) end
end

-- What the library gave, after an activation that is written in Lua.
local function finished(self, result)
  if self._own_choices and self._own_choices.activation then result = self._own_choices.activation(result) end
  add_activity(self, result)
  return result
end

-- The library's layer on tensors of its dtypes; its result, after an activation that is written in Lua.
local function run_native(self, list, training)
  local count = #list
  local inputs = native.pointers(list)
  native.try(C.flow_layer_call, context, self._handle, inputs, count, training and 1 or 0, out_tensor)
  return finished(self, native.tensor(out_tensor[0]))
end

local function run_several(self, call, training) return finished(self, several.run(self, call, training)) end

-- Runs the built layer on a tensor or a list of tensors, or for a call on several tensors (several.lua).
function Layer:_run(inputs, list, training, call)
  if not self._handle or rawget(self, "_own_call") then
    return require("flow.layers.classes.calls").run(self, inputs, list, training, call)
  end
  if call then return run_several(self, call, training) end
  local named = self._named_inputs
  if not named or named.outputs == 1 then return run_native(self, list, training) end
  return run_several(self, { arguments = { list[1] }, options = {}, list = list }, training)
end
-- The shapes and dtypes of its outputs: see symbolic.infer. Models that are graphs ask their layers.
function Layer:_infer(list, single, training, as_call) return symbolic.infer(self, list, single, training, as_call) end
function Layer.fields._autocasts() return true end
function Layer:_keeps_states() return require("flow.layers.recurrent.states").kept(self) end
function Layer.fields._takes_several() return true end      -- where it is written in Lua
function Layer.fields._takes_mask() return false end        -- beside its inputs, though they have no names: a graph of layers
function Layer.fields._on_host() return false end           -- it prepares data outside of plans: host_layer.lua
function Layer:_prepares()      -- it does, or contains a layer that does
  local found = self._on_host
  for _, child in ipairs(self._children or {}) do found = found or child:_prepares() end
  return found
end
function Layer.fields._named_inputs() return nil end        -- of a built-in class: see several.record
function Layer.fields._trains_alone() return false end      -- called by itself: what prepares data does

-- Whether it hands the masks of its inputs on; the mask of its output from that of its inputs: masks.lua.
function Layer.fields.supports_masking(self)
  if self._handle then return C.flow_layer_class_masks(C.flow_layer_class_find(self._record_name)) ~= 0 end
  return self.compute_mask ~= Layer.compute_mask
end
takes "inputs, mask?"
function Layer:compute_mask(inputs, mask)
  if not self._handle then return mask end
  return require("flow.layers.masks").compute(self, inputs, mask)
end

function Layer:call(...)
  if self._handle then return require("flow.layers.classes.extended").call(self, run_native, ...) end
  raise("%s has no call(): define function %s:call(x) ... end", object.title(self), object.class_of(self).name)
end

-- The same, inherited by layers called inside, in a form that costs no closure; see native.between.
local function run_inherited(self, inputs, list, training, before, own, call)
  own.training = training
  local result = self:_run(inputs, list, training, call)
  own.training = before
  return result
end

local CALL = { training = true }
local is_single = several.is_single

local function run_first(self, ...) return inside.call(self, run_inherited, self, ...) end

-- Runs the built layer as the outermost call, or as one inside of another, whose training it inherits.
local function run_call(self, inputs, list, training, call)
  local own = scopes.own()
  local before, was_open = own.training, own.training_is_open      -- of the call that runs in this coroutine; nil outside of all calls
  if before == nil then penalties.clear(self) end
  local is_open = training == nil and (before == nil or was_open)      -- not given: a layer may take its own default
  if is_open and self._trains_alone then is_open, training = false, true end
  own.training_is_open = is_open or nil
  if training == nil then training = before or false end
  local first = not (self._has_run or self._handle and not rawget(self, "_own_call"))      -- layers inside make their variables then
  local ok, result = pcall(first and run_first or run_inherited, self, inputs, list, training, before, own, call)
  if first then rawset(self, "_has_run", ok) end
  own.training_is_open = was_open
  if not ok then
    own.training = before
    error(result, 0)
  end
  return result
end

-- A call with several inputs by position or by name (several.lua).
local function call_several(self, ...)
  local call, training, is_symbolic = several.read(self, ...)
  if rawget(self, "_input_spec") then require("flow.layers.classes.input_spec").check_call(self, call) end
  if is_symbolic then return symbolic.call_several(self, call, training, several) end
  local first_call = not self._built
  several.build(self, call, symbolic.dims)
  local result = run_call(self, call.list, call.list, training, call)
  if first_call and native.is_tensor(result) then rawset(self, "_output_shape", batch_shape(symbolic.dims(result))) end
  return result
end

-- A call on one tensor, or on one list of them: symbolic ones become a node of a graph; others are computed at once, after the layer was
-- built for their shapes if it is the first call.
local function call_one(self, inputs, options, ...)
  if several.is_needed(self, inputs, options, ...) then return call_several(self, inputs, options, ...) end
  if inputs == nil then raise("%s: called without an input", object.title(self)) end
  if options ~= nil and (type(options) ~= "table" or getmetatable(options) or options[1] ~= nil) then
    raise("%s: its second argument is %s; several inputs are one list, layer({ a, b }), options a table of names, { training = true }",
      object.title(self), errors.describe(options))
  end
  options = errors.check_options(object.title(self), options, CALL)
  local check_spec = rawget(self, "_input_spec") and require("flow.layers.classes.input_spec").check
  if symbolic.any(inputs) then
    if check_spec then check_spec(self, inputs) end
    return symbolic.call(self, inputs, options)
  end
  local single, list = is_single(inputs), {}
  if single then
    inputs = ops.operand(inputs, nil, self.name)
    list[1] = inputs
  else
    for i = 1, errors.check_list(object.title(self) .. ": the inputs", inputs) do list[i] = ops.operand(inputs[i], nil, self.name) end
    inputs = list
  end
  if check_spec then check_spec(self, inputs) end
  local first_call = not self._built
  if first_call then
    local shapes = {}
    for i = 1, #list do shapes[i] = symbolic.dims(list[i]) end
    self:_ensure_built(shapes, single)
  end
  local result = run_call(self, inputs, list, options.training)
  if first_call and native.is_tensor(result) then rawset(self, "_output_shape", batch_shape(symbolic.dims(result))) end
  return result
end

function Layer:_call(...)
  if not self._handle and rawget(object.class_of(self), "in_lua") and several.hold_text(...) then
    return several.spread(self, require "flow.layers.classes.text_calls" (self, run_call, ...))
  end
  return several.spread(self, call_one(self, ...))
end

require "flow.layers.classes.contents" (Layer)
require "flow.layers.classes.output_shapes" (Layer)
require "flow.layers.classes.as_in_keras" (Layer)
require("flow.layers.classes.saving_hooks").install(Layer)

---- variables -----------------------------------------------------------------------------------------------------------------

-- All variables in Keras' order: own trainable ones, own others, then those of the layers inside.
function Layer:_collect(list, seen)
  if seen[self] then return list end
  seen[self] = true
  if self._handle then
    for i = 0, C.flow_layer_variable_count(self._handle) - 1 do
      local v = variable.wrap(C.flow_layer_variable(self._handle, i))
      if not seen[v] then
        seen[v] = true
        list[#list + 1] = v
      end
    end
  end
  for _, trainable in ipairs { true, false } do
    for _, v in ipairs(self._own) do
      if v.trainable == trainable and not seen[v] then
        seen[v] = true
        list[#list + 1] = v
      end
    end
  end
  for _, child in ipairs(self._children) do child:_collect(list, seen) end
  return list
end

-- Variables that training changes: none under a layer with trainable = false. asks_inside: its children go by their own flags.
function Layer:_collect_trainable(list, seen, asks_inside)
  if not self._trainable and not asks_inside or seen[self] then return list end
  seen[self] = true
  local own = {}
  if self._handle and self._trainable then
    for i = 0, C.flow_layer_variable_count(self._handle) - 1 do own[#own + 1] = variable.wrap(C.flow_layer_variable(self._handle, i)) end
  end
  for _, v in ipairs(self._own) do own[#own + 1] = self._trainable and v or nil end
  for _, v in ipairs(own) do
    if v.trainable and not seen[v] then
      seen[v] = true
      list[#list + 1] = v
    end
  end
  for _, child in ipairs(self._children) do child:_collect_trainable(list, seen) end
  return list
end

-- Adds the penalties of this layer and all inside of it, scalars, to list, each layer once. seen: by layer.
function Layer:_collect_penalties(list, seen)
  if seen[self] then return list end
  seen[self] = true
  for i = 0, self._handle and self._built and C.flow_layer_variable_count(self._handle) - 1 or -1 do
    check(C.flow_layer_penalty(context, self._handle, i, out_tensor))
    if out_tensor[0] ~= nil then list[#list + 1] = native.tensor(out_tensor[0]) end
  end
  penalties.collect(self, list)
  for _, child in ipairs(self._children) do child:_collect_penalties(list, seen) end
  return list
end

-- What regularizers and add_loss() add to the loss: a list of scalars, for a training loop that the user writes.
function Layer.fields.losses(self) return self:_collect_penalties({}, {}) end

local function printed(list) return require "flow.classes.printed" (list) end
function Layer.fields.weights(self) return printed(self:_collect({}, {})) end
function Layer.fields.trainable_weights(self) return printed(self._trainable and self:_collect_trainable({}, {}) or {}) end
function Layer.fields.non_trainable_weights(self)
  local trainable, list = {}, {}
  for _, v in ipairs(self.trainable_weights) do trainable[v] = true end
  for _, v in ipairs(self.weights) do
    if not trainable[v] then list[#list + 1] = v end
  end
  return printed(list)
end
Layer.fields.variables = Layer.fields.weights
Layer.fields.trainable_variables = Layer.fields.trainable_weights
Layer.fields.non_trainable_variables = Layer.fields.non_trainable_weights
function Layer.fields.built(self) return self._built end

-- The symbolic tensors of the layer's first call in a model: flow.Model { inputs = model.inputs, outputs = layer.output }.
local function first_node(self)
  return self._nodes[1] or raise("%s has not been called on symbolic tensors, so it has no input and output", object.title(self))
end
function Layer.fields.input(self)
  local node = first_node(self)
  local inputs = #node.inputs > 0 and node.inputs or node.outputs      -- an InputLayer's is what it gives
  return #inputs == 1 and inputs[1] or { unpack(inputs) }
end
function Layer.fields.output(self)
  local outputs = first_node(self).outputs
  return #outputs == 1 and outputs[1] or { unpack(outputs) }
end
-- The dtype of its computation, that of its weights, and both as an object with a name.
function Layer.fields.compute_dtype(self) return self._policy.compute_dtype end
function Layer.fields.variable_dtype(self) return self._policy.variable_dtype end
function Layer.fields.dtype(self) return self._policy.variable_dtype end
function Layer.fields.dtype_policy(self) return self._policy end
function Layer.fields.name(self) return self._title end      -- of a built-in layer
function Layer.fields.class_name(self) return object.class_of(self).name end
-- The class of the library that a built-in layer is of, or that its class extends.
function Layer.fields._record_name(self) return require("flow.extended").base(object.class_of(self)).name end
function Layer.fields.trainable(self) return self._trainable end

-- Also of all layers inside. trainable_version tells compiled models that their steps have to be made again.
function Layer.setters.trainable(self, value)
  if type(value) ~= "boolean" then raise("%s: trainable is true or false, got %s", object.title(self), errors.describe(value)) end
  for _, layer in ipairs(self:_inside()) do
    rawset(layer, "_trainable", value)
    if layer._handle then C.flow_layer_set_trainable(layer._handle, value and 1 or 0) end
  end
  variable.trainable_version = variable.trainable_version + 1
end

-- Its config as Keras' (of models: saving/init.lua). Of a class written in Lua: the plain values among its fields.
function Layer:get_config() return require("flow.layers.layer_config").of(self) end
-- Arguments of a built-in layer as fields: dense.units.
function Layer:_missing(key) return require("flow.layers.layer_config").find(self, key) end
-- Sets those that calls read, and the name: dropout.rate = 0.2.
function Layer:_set_missing(key, value) return require("flow.layers.layer_config").set(self, key, value) end
-- A layer that get_config() described, not built.
object.static(Layer, "from_config", function(class, config) return require("flow.layers.layer_config").make(class, config) end)

-- Number of elements in all variables.
function Layer:count_params()
  if not self.built then raise("%s: count_params() before it is built: call it on a tensor, or build(input_shape)", object.title(self)) end
  local total = 0
  for _, v in ipairs(self.weights) do total = total + v.size end
  return total
end

-- Copies of all variables, in Keras' order.
function Layer:get_weights()
  local list = {}
  for i, v in ipairs(self.weights) do list[i] = v:value() end
  return list
end
function Layer:set_weights(values) require "flow.layers.set_weights" (self, values) end

return Layer
