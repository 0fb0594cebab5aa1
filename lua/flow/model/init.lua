-- init.lua: models: layers that contain layers, and can be trained (train/compile.lua adds compile, fit and others).
--
--   flow.Sequential { layer, layer, ... }                 one after the other
--   flow.Model { inputs = input, outputs = output }       any graph of calls
--   flow.Model:extend("Name") with call()                 written in Lua
--
-- The room: models as graphs of layers: summary, close. May use: tensor, layers, distribute.
--
-- A graph is kept in these fields of a Functional or connected Sequential: inputs and outputs (lists of symbolic tensors), _order (its
-- calls in running order), _depths (of them), _graph_layers (in Keras' order), _input_shape, _host, _run_order and _run_outputs (what runs
-- in place of _order and outputs: host_inputs.lua), and the names or form in which inputs and outputs were given (named_data.lua). A
-- Sequential without a known input has only _children; _input is its Input, or false.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local Layer = require "flow.layers.layer"
local several = require "flow.layers.several"
local arguments = require "flow.arguments"
local parameters = require "flow.layers.classes.parameters"
local signature = require "flow.signature"
local placement = require "flow.tensor.placement"
local devices = require "flow.devices"
local scopes = require "flow.scopes"
local inside = require "flow.layers.classes.inside"
local call_order = require "flow.model.call_order"
local named_data = require "flow.model.named_data"
local host_inputs = require "flow.model.host_inputs"
local host_replay = require "flow.model.host_replay"

local C, raise = native.C, errors.raise

local Model = object.open(object.class("Model", Layer, "model"))
local Functional = object.hide(object.class("Functional", Model))
local Sequential = object.class("Sequential", Model)
local models = { Model = Model, Functional = Functional, Sequential = Sequential }
Sequential._takes_layers = false      -- its layers are those of its list alone, as in Keras

---- common ---------------------------------------------------------------------------------------------------------------------

-- Whether the first argument of a constructor gives the inputs of a graph.
local function is_graph(first)
  local inputs = first
  if arguments.is_options(first) then inputs = first.inputs end
  local entry = arguments.is_options(inputs) and select(2, next(inputs)) or inputs      -- of a table by name, any
  return symbolic.any(entry)
end

-- Makes a class of models written in Lua. Without init() and call() it is constructed like flow.Model, or like flow.Sequential if it
-- extends that: a graph of layers with further methods, such as train_step.
function Model.extend(parent, class_name)
  local class = Layer.extend(parent, class_name)
  local metatable = getmetatable(class)
  local make, above = metatable.__call, rawget(parent, "of_graph") or parent == Model and Functional or parent
  rawset(class, "of_graph", parent == Sequential and class or object.under(class, above))
  rawset(rawget(class, "of_graph"), "of_script", class)
  metatable.__call = function(_, first, ...)
    local is_plain = not object.own_init(class) and class.call == Layer.call
    if is_plain and class.add == Sequential.add then return models.sequential(class, first, ...) end
    if is_plain and is_graph(first) then return models.functional(rawget(class, "of_graph"), first, ...) end
    return make(class, first, ...)
  end
  return class
end

-- What the init of a script's class calls as Keras' calls super().__init__(inputs, outputs): the model is that graph, with the methods of
-- its class. Without a graph: as of every layer.
object.static(Model, "init", function(_, self, first, ...)
  if not is_graph(first) then return Layer.init(self, first, ...) end
  setmetatable(self, rawget(object.class_of(self), "of_graph").metatable)
  models.give_graph(self, first, ...)
end)

-- The same of a class that extends Sequential, with its layers.
object.static(Sequential, "init", function(_, self, list, options)
  if arguments.is_options(list) then list, options = list.layers, list end
  rawset(self, "_input", false)
  for _, layer in ipairs(list or {}) do self:add(layer) end
  if not options then return end
  local others = {}
  for name, value in pairs(options) do others[name] = name ~= "layers" and value or nil end
  Layer.init(self, others)
end)

rawset(Model, "wraps", setmetatable({ compile = parameters.of_compile }, { __index = rawget(Layer, "wraps") }))
-- As in Keras, what a model contains goes by the flags of its layers: with trainable = false it gives its layers that flag, which they may
-- lose again. So a layer that a frozen model contains trains if it is set to.
function Model:_collect_trainable(list, seen)
  return Layer._collect_trainable(self, list, seen, true)
end

-- Applies the option trainable = false, after the layers are there; returns the model.
local function freeze(self, options)
  if options.trainable == false then self.trainable = false end
  return self
end

-- A model runs on the devices of the strategy in whose scope it was made (nil: outside of all scopes), or on the device of flow.device; see
-- train/steps.lua.
function Model:_prepare(class_name, options)
  rawset(self, "_placement", placement.current())
  rawset(self, "_device", devices.current())
  return Layer._prepare(self, class_name, options)
end
function Model.fields._placement() return nil end
function Model.fields._device() return -1 end
function Model.fields._autocasts() return false end          -- its layers do
function Functional.fields._takes_several() return false end
function Sequential.fields._takes_several() return false end
function Functional.fields._takes_mask() return true end
function Sequential.fields._takes_mask() return true end
function Model.fields.distribute_strategy(self)
  local p = self._placement
  return p and p.strategy or require("flow.distribute").get_strategy()
end

-- Operations on symbolic tensors are not among the layers, nor what a model of a graph has in its fields besides, as in Keras.
function Model.fields.layers(self)
  local list = {}
  for _, layer in ipairs(not object.is(self, Sequential) and rawget(self, "_graph_layers") or self._children) do
    if not rawget(layer, "_operation") then list[#list + 1] = layer end
  end
  return require "flow.classes.printed" (list)
end
-- The names of the classes of the outputs, from the data set of fit or from its file; nil: unknown.
function Model.fields.class_names(self) return rawget(self, "_class_names") end
function Model.fields.input_shape(self)
  return rawget(self, "_input_shape") or raise("%s has no input shape before it is built", object.title(self))
end

local function one_or_list(list) return #list == 1 and list[1] or list end
for _, name in ipairs { "input", "output" } do
  Model.fields[name] = function(self)
    local list = rawget(self, name .. "s")
    if list and rawget(self, "_names_of_" .. name .. "s") then
      local by_name = {}
      for i, key in ipairs(named_data.names(self, name .. "s")) do by_name[key] = list[i] end
      return by_name
    end
    if rawget(self, "_list_of_" .. name .. "s") then return list end      -- it was made of a list, which may have one entry
    return list and one_or_list(list) or raise("%s has no %s before its input shape is known", object.title(self), name)
  end
end

-- A layer by name, or by position from 1.
function Model:get_layer(name)
  if arguments.is_options(name) then name = name.name or name.index end
  local layers = self.layers
  if type(name) == "number" then
    return layers[name] or raise("%s: there is no layer %d, it has %d", object.title(self), name, #layers)
  end
  local known = {}
  for i, layer in ipairs(layers) do
    if layer.name == name then return layer end
    known[i] = layer.name
  end
  if type(name) ~= "string" then raise("%s: get_layer takes a name or a number, got %s", object.title(self), errors.describe(name)) end
  raise("%s: no layer is called %q%s", object.title(self), name, errors.choices(name, known))
end

-- Casts an input to the dtype of its Input and adds a missing last dimension of 1. In Sequential models the layers check the sizes, as in
-- Keras: the model may have been built for the size of its first batch.
local function fit_input(self, x, wanted)
  local found, given = symbolic.dims(x), x
  if native.dtype_names[C.flow_tensor_dtype(native.pointer(x))] ~= wanted.dtype then x = x:to(wanted.dtype) end
  local n = #wanted.shape
  if #found == n - 1 and wanted.shape[n] == 1 then x, found[n] = x:expand_dims(-1), 1
  elseif #found == n + 1 and found[n + 1] == 1 then x, found[n + 1] = x:squeeze(-1), nil end
  local fits, any_size = #found == n, object.is(self, Sequential)
  for i = 2, n do fits = fits and (any_size or wanted.shape[i] < 0 or found[i] == wanted.shape[i]) end
  if not fits then
    raise("%s: input \"%s\" has shape %s, expected %s", object.title(self), wanted.name, symbolic.shape_text(found),
      symbolic.shape_text(wanted.shape))
  end
  if x ~= given and given._keras_mask then x._keras_mask = given._keras_mask end
  return x
end

---- graphs of calls -------------------------------------------------------------------------------------------------------------

-- Converts a table of tensors by name to a list in the order of the names, and returns the names, too.
local function named_list(value, what)
  local names, list = {}, {}
  for name, entry in pairs(value) do
    if not symbolic.is(entry) then
      raise("%s: entry %q is %s, expected a symbolic tensor", what, tostring(name), errors.describe(entry))
    end
    if type(name) ~= "string" then raise("%s: a table has names, or is a list, got both", what) end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = value[name] end
  return list, names
end

-- Symbolic tensors as a list: one, a list, or a table by name, whose names are the second result. Raises for anything else.
local function as_list(value, what)
  if symbolic.is(value) then return { value } end
  if type(value) == "table" and not getmetatable(value) and not arguments.is_options(value) then
    for i = 1, errors.check_list(what, value) do
      if not symbolic.is(value[i]) then raise("%s: entry %d is %s, expected a symbolic tensor", what, i, errors.describe(value[i])) end
    end
    return value
  end
  if arguments.is_options(value) and next(value) ~= nil then return named_list(value, what) end
  if value == nil then raise("%s is missing: write flow.Model { inputs = a, outputs = b }, of what flow.Input gives", what) end
  raise("%s: expected symbolic tensors as flow.Input gives them, got %s", what, errors.describe(value))
end

-- Sets the graph of self to the function from inputs to outputs. names: of those that were given by name. Steps that were traced are
-- dropped.
local function set_graph(self, inputs, outputs, names_of_inputs, names_of_outputs)
  rawset(self, "_names_of_inputs", names_of_inputs)
  rawset(self, "_names_of_outputs", names_of_outputs)
  rawset(self, "inputs", inputs)
  rawset(self, "outputs", outputs)
  local order, layers, depths = call_order.of(self, outputs)
  local run_order, run_outputs = host_inputs.expand(order, outputs)
  rawset(self, "_host", host_inputs.of_graph(self, run_order, inputs, run_outputs))
  rawset(self, "_order", order)
  rawset(self, "_run_order", run_order)
  rawset(self, "_run_outputs", run_outputs)
  rawset(self, "_depths", depths)      -- of the nodes
  rawset(self, "_graph_layers", layers)
  local shapes = {}
  for i, input in ipairs(inputs) do shapes[i] = input.shape end
  rawset(self, "_input_shape", #inputs == 1 and shapes[1] or shapes)
  rawset(self, "_built", true)
  if rawget(self, "_steps") then self:_forget_steps() end
end

-- Calls the layers on tensors for the inputs of the plans; returns the output, or a list of them. training: of this call, which then holds
-- for all calls in the graph. If training is not given (training_is_open), each call has the value that it was given in the graph.
local function run_graph(self, list, training)
  local values, inputs, host, open = {}, host_inputs.fed(self), rawget(self, "_host"), scopes.own().training_is_open
  if #list ~= #inputs then
    raise("%s: expected %d input%s, got %d%s", object.title(self), #inputs, #inputs == 1 and "" or "s", #list,
      #list == #inputs + 1 and "; targets are an argument of their own: model:fit(x, y)" or "")
  end
  for i, input in ipairs(inputs) do values[input] = fit_input(self, list[i], input) end
  for _, node in ipairs(self._run_order) do
    if not values[node.outputs[1]] and #node.inputs > 0 and not (host and host.is_host[node]) then
      local arguments_list = {}
      for i, input in ipairs(node.inputs) do arguments_list[i] = values[input] end
      local own = training      -- it overrules what the call in the graph was given, as in Keras, where that is the default
      if open then own = node.options and node.options.training end
      local result
      if node.call then result = several.gathered(node.layer(unpack(several.unpacked(several.replace(node.call, arguments_list), own))))
      else result = several.gathered(node.layer(node.single and arguments_list[1] or arguments_list, { training = own })) end
      if native.is_tensor(result) then
        values[node.outputs[1]] = result
      else
        result = named_data.outputs_of(node.layer, result)
        for i, output in ipairs(node.outputs) do values[output] = result[i] end
      end
    end
  end
  local results = {}
  for i, output in ipairs(self._run_outputs) do results[i] = values[output] end
  return one_or_list(results)
end

-- The shapes of the outputs for inputs with unknown sizes: each layer computes its output shape from that of the layers before it. If an
-- Input has a size, it replaces an unknown one.
local function infer_graph(self, list, single, training)
  local values = {}
  for i, input in ipairs(self.inputs) do
    local shape, wanted = { unpack(list[i].shape) }, input.shape
    if #list ~= #self.inputs or #shape ~= #wanted then return symbolic.infer(self, list, single, training) end
    for axis = 2, #shape do
      if shape[axis] < 0 then shape[axis] = wanted[axis] end
      local fits = wanted[axis] < 0 or shape[axis] == wanted[axis] or object.is(self, Sequential)
      if not fits then return symbolic.infer(self, list, single, training) end      -- which raises
    end
    values[input] = { shape = shape, dtype = input.dtype, _times = rawget(list[i], "_times") }
  end
  for _, node in ipairs(self._order) do
    if not values[node.outputs[1]] then
      local inputs, own = {}, node.options and node.options.training
      for i, input in ipairs(node.inputs) do inputs[i] = values[input] end
      if own == nil then own = training end
      local as_call = node.call and function(filled) return several.replace(node.call, filled) end
      inputs = symbolic.with_masks(node.layer, node.inputs, inputs)
      for i, output in ipairs(node.layer:_infer(inputs, node.single, own, as_call)) do values[node.outputs[i]] = output end
    end
  end
  local results = { single = #self.outputs == 1 }
  for i, output in ipairs(self.outputs) do results[i] = values[output] end
  return results
end

-- Calls with masks, model(x, { mask = m }), one or a list with false for none: the inputs have them during the call.
local function run_with_masks(self, training, call)
  local inputs, masks = call.arguments[1], call.options.mask
  if native.is_tensor(inputs) then inputs = { inputs } end
  if native.is_tensor(masks) then masks = { masks } end
  local before = {}
  for i, x in ipairs(inputs) do before[i] = x._keras_mask or false end
  local function put(list)
    for i, x in ipairs(inputs) do
      if masks[i] then x._keras_mask = list[i] or nil end
    end
  end
  return native.between(function() put(masks) end, function() put(before) end, function() return run_graph(self, inputs, training) end)
end

-- What a model does with its first data.
function Model:_meet(data) host_replay.record(self, data) end
function Model:_call(inputs, ...)
  if not host_replay.is_fed(self, inputs) then return Layer._call(self, inputs, ...) end
  local options, count = { ... }, select("#", ...)
  return host_replay.replay(self, inputs, function(form) return Layer._call(self, form, unpack(options, 1, count)) end)
end
function Functional:_meet() end

function Functional:_run(_, list, training, call)
  return call and run_with_masks(self, training, call) or run_graph(self, list, training)
end
function Functional:_infer(list, single, training, as_call)
  return infer_graph(self, as_call and { unpack(list, 1, #self.inputs) } or list, single, training)
end

-- Calls a graph whose first layers may prepare data on the host.
local function call_graph(self, inputs, options)
  if rawget(self, "_host") and symbolic.any(inputs) then
    if scopes.own().host_record or scopes.own().host_replay then return host_inputs.inline(self, inputs) end
    return Layer._call(self, inputs, options)
  end
  if not host_inputs.are_raw(self, inputs) then return Layer._call(self, inputs, options) end
  return host_inputs.within(self, Layer._call, self, host_inputs.prepare(self, inputs), options)
end

function Functional:_call(inputs, options)
  local result = call_graph(self, named_data.complete(self, "the input", "inputs", inputs), options)
  if not rawget(self, "_names_of_outputs") and not rawget(self, "_form_of_outputs") then return result end
  return named_data.results(self, (native.is_tensor(result) or symbolic.is(result)) and { result } or result)
end
require "flow.layers.recurrent.reset" (Model, true)      -- of all its layers

function Model.fields.output_shape(self)
  local shapes = {}
  for i, output in ipairs(rawget(self, "outputs") or {}) do shapes[i] = output.shape end
  return shapes[1] and one_or_list(shapes) or raise("%s has no output shape before its input shape is known", object.title(self))
end

local MODEL = "inputs?, outputs?, { name?, trainable: boolean = true } -- flow.Model { inputs = input, outputs = output }"

-- Makes a prepared object the model of a graph; returns it.
local function give_graph(self, inputs, outputs, options)
  if options.name then rawset(self, "name", require("flow.names").checked("flow.Model", options.name)) end
  local input_list, input_names = as_list(inputs, "flow.Model: inputs")
  local output_list, output_names = as_list(named_data.of_outputs(self, outputs, symbolic.is), "flow.Model: outputs")
  set_graph(self, input_list, output_list, input_names, output_names)
  rawset(self, "_list_of_inputs", input_list == inputs or nil)
  rawset(self, "_list_of_outputs", output_list == outputs or nil)
  for _, layer in ipairs(self._graph_layers) do self._children[#self._children + 1] = layer end
  return freeze(self, options)
end

local function new_functional(class, inputs, outputs, options)
  return give_graph(object.new(class):_prepare(class.name, options), inputs, outputs, options)
end

signature.takes(MODEL)
signature.constructor(Model, "flow.Model", function(...) return new_functional(Functional, ...) end)
local construct = getmetatable(Model).__call
getmetatable(Model).__call = function(class, ...) return construct(class, named_data.of_graph(symbolic.is, ...)) end

-- The same for a class that extends Functional.
local functional_call = signature.entry("flow.Model", new_functional, MODEL)
local function read_graph(...) return signature.read(functional_call, named_data.of_graph(symbolic.is, ...)) end
function models.functional(class, ...) return new_functional(class, read_graph(...)) end
function models.give_graph(self, ...) return give_graph(self, read_graph(...)) end

---- Sequential --------------------------------------------------------------------------------------------------------------------

-- What a layer of a Sequential gives for the outputs of the one before: a list, of several where it returns its states, too. A list of
-- several is the input of the next layer, which may be one that takes several.
local function outputs_of(layer, before)
  local x = layer(one_or_list(before))
  return symbolic.is(x) and { x } or x
end

-- Once the input shape is known the layers are called on symbolic tensors, which builds them and finds every shape.
local function connect(self)
  local outputs = { self._input }
  for _, layer in ipairs(self._children) do outputs = inside.call(self, outputs_of, layer, outputs) end
  set_graph(self, { self._input }, outputs)
end

-- The input shape of a first layer: its option input_shape, or that of a model.
local function first_shape(layer)
  local inputs = rawget(layer, "inputs")
  return rawget(layer, "input_shape_given") or (inputs and { unpack(inputs[1].shape, 2) })
end

-- Describes a value that is not a layer; says so if it is a class that was not called.
local function describe(value)
  local title = signature.namespaces[value]
  return title and ("the class %s itself: write %s()"):format(title, title:gsub("^flow%.layers", "layers")) or errors.describe(value)
end

-- Appends a layer, which is built if the input shape is known. A layer that is refused, or does not fit, leaves the model unchanged.
function Sequential:add(layer)
  if symbolic.is(layer) then layer = layer.layer end
  if not object.is(layer, Layer) then raise("%s: add() takes a layer, got %s", object.title(self), describe(layer)) end
  if object.class_of(layer).name == "InputLayer" then
    if #self._children > 0 or self._input then raise("%s: an Input can only be the first layer", object.title(self)) end
    rawset(self, "_input", layer._nodes[1].outputs[1])
    return
  end
  for _, other in ipairs(self._children) do
    if other.name == layer.name then
      raise("%s: two layers are called \"%s\"; give one another name", object.title(self), layer.name)
    end
  end
  local given = #self._children == 0 and not self._input and first_shape(layer)
  local input = self._input or given and require("flow.layers").Input(given)
  if input then
    local before = rawget(self, "outputs") or { input }
    local outputs = inside.call(self, outputs_of, layer, before)      -- a layer that does not fit is not added
    rawset(self, "_input", input)
    set_graph(self, { input }, outputs)
  end
  self._children[#self._children + 1] = layer
end

-- Removes the last layer and returns it; it keeps its weights.
function Sequential:pop()
  if #self._children == 0 then raise("%s: there is no layer to remove", object.title(self)) end
  local layer = table.remove(self._children)
  if #self._children > 0 and self._input then
    set_graph(self, { self._input }, self.outputs[1].node.inputs)
  else
    rawset(self, "outputs", nil)
    rawset(self, "_built", false)
  end
  return layer
end

-- Connects a Sequential that has no input shape yet. dtype: of the input, nil: float32. A failure leaves it without an input, as it was.
local function build_sequential(self, shape, dtype)
  if self._built or #self._children == 0 then return end
  if arguments.is_options(shape) then shape = shape.input_shape end
  if type(shape) ~= "table" or type(shape[1]) ~= "number" then
    raise("%s: build() takes a shape such as {-1, 4}, got %s", object.title(self), errors.describe(shape))
  end
  errors.check_list(object.title(self) .. ": build", shape)
  local rows = self:_keeps_states() and shape[1] > 0 and shape[1] or nil
  rawset(self, "_input", require("flow.layers").Input({ unpack(shape, 2) }, { batch_size = rows, dtype = dtype }))
  local ok, problem = pcall(connect, self)
  if not ok then
    rawset(self, "_input", false)
    error(problem, 0)
  end
end

-- Makes the variables for inputs of this shape, {-1, 28, 28} for any number of rows; otherwise the first call does.
function Sequential:build(shape) build_sequential(self, shape) end
function Sequential:_meet(data) host_inputs.meet(self, data, connect) end
function Sequential:_call(inputs, options)
  local one_picture = not rawget(self, "_input") and require "flow.model.one_picture"
  if one_picture and one_picture.is(self, inputs) then return one_picture.call(self, inputs, options) end
  if not symbolic.any(inputs) then self:_meet(inputs) end
  if symbolic.is(inputs) and inputs.dtype == "string" then build_sequential(self, inputs.shape, "string") end
  return call_graph(self, inputs, options)
end
function Sequential:_infer(list, single, training, as_call)
  if as_call and rawget(self, "inputs") then list, single = { list[1] }, true end
  return rawget(self, "inputs") and infer_graph(self, list, single, training) or symbolic.infer(self, list, single, training)
end

function Sequential:_run(_, list, training, call)
  if #self._children == 0 then raise("%s: it has no layers yet; add() some", object.title(self)) end
  return Functional._run(self, nil, list, training, call)
end

local SEQUENTIAL = "layers?: gaps, { name?, trainable: boolean = true, dtype? } -- flow.Sequential { layer, layer, ... }"

-- A Sequential, or an object of a class that extends it, of a list of layers, one layer, or nil.
local function new_sequential(class, list, options)
  list = list or {}
  if object.is(list, Layer) or symbolic.is(list) then list = { list } end
  if type(list) ~= "table" or getmetatable(list) then raise("flow.Sequential takes a list of layers, got %s", describe(list)) end
  local count = errors.check_list("flow.Sequential", list)
  local self = object.new(class):_prepare(class.name, options)
  rawset(self, "_input", false)
  for i = 1, count do self:add(list[i]) end
  return freeze(self, options)
end

signature.takes(SEQUENTIAL)
signature.constructor(Sequential, "flow.Sequential", function(...) return new_sequential(Sequential, ...) end)

local sequential_call = signature.entry("flow.Sequential", new_sequential, SEQUENTIAL)
function models.sequential(class, ...) return new_sequential(class, signature.read(sequential_call, ...)) end

return models
