-- config.lua: layers and models as Keras' config.json describes them (keras.src.saving.serialization_lib), and back.
--
-- An entry is { module =, class_name =, config =, registered_name =, build_config = }; an entry of a functional model has also its calls:
-- inbound_nodes, where a tensor is named by the call that made it: { layer, call, output }, counted from 0.
--
-- A reader is { path = what messages call the file, custom = classes by name, calls = calls made so far, depth = of entries in entries,
-- clone = see config.clone }. What a file says is checked before it is used: a file may be damaged or made by somebody else, so each wrong
-- kind of value is an error that names the file, and nesting is limited. entries.lua has the entries of single layers.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local models = require "flow.model"
local named_data = require "flow.model.named_data"
local layers = require "flow.layers"
local entries = require "flow.layers.entries"
local Layer = require "flow.layers.layer"
local symbolic = require "flow.layers.symbolic"
local signature = require "flow.signature"
local gathered = require("flow.layers.several").gathered
local operations = require "flow.saving.operations"

local raise = errors.raise
local config = {}

---- writing ----------------------------------------------------------------------------------------------------------------------

local shape_json, policy = entries.shape, entries.policy

-- The entry of an Input.
local function input_entry(layer)
  local input = layer._nodes[1].outputs[1]
  return { module = "keras.layers", class_name = "InputLayer", registered_name = json.null, config = {
    batch_shape = shape_json(input.shape), dtype = input.dtype, sparse = false, ragged = false, name = layer.name, optional = false } }
end

-- The entry of a Sequential: its Input, if it is known, and its layers.
local function sequential_entry(model)
  local list = json.list()
  if model._input then list[1] = input_entry(model._input.layer) end
  for _, layer in ipairs(model._children) do list[#list + 1] = config.entry(layer) end
  local content = { name = model.name, trainable = model._trainable, dtype = policy(model.dtype_policy.name), layers = list }
  if model._built then content.build_input_shape = shape_json(model._input_shape) end
  return { module = "keras", class_name = "Sequential", registered_name = json.null, config = content }
end

-- The calls of each layer that the model is made of, in Keras' order, and the place of each among them, from 0.
local function calls_of(model)
  local calls, index = {}, {}      -- calls: a list by layer; index: a number by node
  for _, node in ipairs(model._order) do
    calls[node.layer] = calls[node.layer] or {}
    table.insert(calls[node.layer], node)
  end
  for _, list in pairs(calls) do
    table.sort(list, function(a, b) return a.position < b.position end)
    for i, node in ipairs(list) do index[node] = i - 1 end
  end
  return calls, index
end

-- The args and kwargs of a call on several tensors.
local function several_json(call, reference)
  -- Tensors by reference or as constants, lists and tables of them, other values as they are.
  local function value_json(value)
    if symbolic.is(value) then return reference(value) end
    if native.is_tensor(value) then return operations.tensor_entry(value) end
    if type(value) ~= "table" then return value end
    local by_name = {}
    for name, entry in pairs(value) do by_name[name] = type(name) == "string" and value_json(entry) or nil end
    if next(by_name) ~= nil then return by_name end
    local list = json.list()
    for i, entry in ipairs(value) do list[i] = entry and value_json(entry) or json.null end
    return list
  end
  local args, kwargs = json.list(), {}
  for i, value in ipairs(call.arguments) do args[i] = value_json(value) end
  for name, value in pairs(call.options) do kwargs[name] = value_json(value) end
  return { args = args, kwargs = kwargs }
end

-- The entry of a functional model: its layers in Keras' order, each with its calls. A tensor is named by { layer, which of the layer's
-- calls, which output }, from 0; nested models are entries like layers.
local function functional_entry(model)
  local calls, index = calls_of(model)
  -- An input that no output depends on is not among the calls: its layer has one.
  local function history(t) return { t.layer.name, index[t.node] or 0, t.index - 1 } end
  local function reference(t)
    return { class_name = "__keras_tensor__", config = { shape = shape_json(t.shape), dtype = t.dtype, keras_history = history(t) } }
  end
  local list = json.list()
  for i, layer in ipairs(model._graph_layers) do
    local entry = config.entry(layer)
    entry.name, entry.inbound_nodes = layer.name, json.list()
    for _, node in ipairs(calls[layer] or {}) do
      if #node.inputs > 0 then
        local call = { args = json.list(), kwargs = {} }
        if operations.is(layer) then
          call.args, call.kwargs = operations.arguments(layer, node, reference)
        elseif node.call then
          call = several_json(node.call, reference)
        elseif node.single and not rawget(layer, "_names_of_inputs") then
          call.args[1] = reference(node.inputs[1])
        else
          local names = rawget(layer, "_names_of_inputs")
          call.args[1] = names and {} or json.list()
          for k, t in ipairs(node.inputs) do call.args[1][names and names[k] or k] = reference(t) end
        end
        local training = node.options and node.options.training
        if training ~= nil then call.kwargs.training, call.own_training = training, training end
        table.insert(entry.inbound_nodes, call)
      end
    end
    list[i] = entry
  end
  -- Among the inputs and outputs of a model, and only there, Keras counts a call that every functional model begins with.
  local function ends_history(t)
    local found = history(t)
    if object.is(t.layer, models.Functional) then found[2] = found[2] + 1 end
    return found
  end
  -- form: see named_data.flattened.
  local function nested_ends(tensors, form)
    if type(form) == "number" then return ends_history(tensors[form]) end
    local histories = json.list()
    for i, one in ipairs(form) do histories[i] = nested_ends(tensors, one) end
    return histories
  end
  local function ends(kind)
    local tensors, names, form = model[kind], rawget(model, "_names_of_" .. kind), rawget(model, "_form_of_" .. kind)
    if form then return nested_ends(tensors, form) end
    if names then
      local by_name = {}
      for i, name in ipairs(names) do by_name[name] = ends_history(tensors[i]) end
      return by_name
    end
    if #tensors == 1 and not rawget(model, "_list_of_" .. kind) then return ends_history(tensors[1]) end
    local histories = json.list()
    for i, t in ipairs(tensors) do histories[i] = ends_history(t) end
    return histories
  end
  return { module = "keras.src.models.functional", class_name = "Functional", registered_name = "Functional",
           config = { name = model.name, trainable = model._trainable, layers = list,
                      input_layers = ends "inputs", output_layers = ends "outputs" } }
end

-- Whether a graph describes the model whole: not that of a class with its own get_config(), or whose init takes anything but a graph,
-- as in Keras. Such a model is made by its class again.
function config.is_graph(model)
  local class = object.class_of(model)
  local is_sequential = object.is(model, models.Sequential)
  if not (is_sequential or object.is(model, models.Functional)) then return false end
  if class.get_config ~= (is_sequential and models.Sequential or models.Functional).get_config then return false end
  local init = object.own_init(class)
  if not init then return true end
  init = signature.unguarded(init)
  local first = debug.getlocal(init, 2)
  local names = is_sequential and "layers" or "inputs"
  return first == names or first == nil and debug.getinfo(init, "u").isvararg
end

-- The entry of a layer or model. Within config.clone layers that copy themselves need none.
local copies_itself = false
function config.entry(layer)
  if copies_itself and object.has(layer, "_copy") then return { class_name = layer.class_name, config = { name = layer.name } } end
  if object.is(layer, layers.InputLayer) then return input_entry(layer) end
  if operations.is(layer) then return operations.entry(layer) end
  local is_sequential, is_functional = object.is(layer, models.Sequential), object.is(layer, models.Functional)
  if not config.is_graph(layer) then return entries.write(layer) end
  local entry = is_sequential and sequential_entry(layer) or functional_entry(layer)
  local class = object.class_of(layer)
  if class ~= models.Sequential and class ~= models.Functional then      -- one that a script extends with its own steps
    entry.module, entry.class_name, entry.registered_name = json.null, class.name, class.name
  end
  entry.build_config = is_functional and { input_shape = json.null } or entries.build_config(layer)
  return entry
end

---- reading: models --------------------------------------------------------------------------------------------------------------------

local given, text_field, table_field, dtype_of = entries.given, entries.text_field, entries.table_field, entries.dtype

-- The Input of an entry, a symbolic tensor.
local function input_of(entry, what)
  local content = table_field(entry, "config", what)
  local whole = given(content.batch_shape) and content.batch_shape or content.batch_input_shape
  if type(whole) ~= "table" then raise("%s: InputLayer: it has no batch_shape", what) end
  local shape = {}
  for i = 2, #whole do
    shape[i - 1] = given(whole[i]) and whole[i] or -1
  end
  return layers.Input(shape, { name = given(content.name) and content.name or nil, dtype = dtype_of(content),
                               batch_size = given(whole[1]) and whole[1] or nil })
end

-- An entry of a file that describes a layer or a model: a table, or an error.
local function entry_of(value, what)
  if type(value) ~= "table" or value == json.null then raise("%s: an entry of the model is not a table", what) end
  return value
end

-- The reader of what a model holds. A reader that copies a model, reader.clone, makes layers by its functions: see config.clone.
local function taken_clone(reader)
  local clone = reader.clone
  reader.clone = nil
  return clone
end

-- The layer of an entry, or its copy: of `original`, which the model that is copied has.
local function layer_of(inner, reader, clone, original)
  if not clone or not original or operations.is(original) then return config.read(inner, reader) end
  if object.is(original, layers.InputLayer) then
    for i, t in ipairs(clone.model.inputs) do
      if t.layer == original and clone.inputs then return clone.inputs[i] end
    end
    return config.read(inner, reader)
  end
  local is_graph = object.is(original, models.Sequential) or object.is(original, models.Functional)
  if is_graph and (clone.recursive or not clone.layer) then return clone.again(original) end
  if not clone.layer then return object.has(original, "_copy") and original:_copy() or config.read(inner, reader) end
  local made = clone.layer(original)
  if not object.is(made, Layer) then
    raise("%s: clone_function returns a layer, got %s for %s", reader.path, errors.describe(made), object.title(original))
  end
  return made
end

-- The Sequential of an entry, or an object of a script's class that extends it.
local function read_sequential(entry, reader, class)
  local content = table_field(entry, "config", reader.path)
  local list, clone, shift = {}, taken_clone(reader), 0      -- shift: 1 where the Input is among the layers of the file
  for i, inner in ipairs(table_field(content, "layers", reader.path)) do
    local is_input = entry_of(inner, reader.path).class_name == "InputLayer"
    shift = is_input and 1 or shift
    local original = clone and (is_input and clone.model._input.layer or clone.model._children[i - shift])
    list[i] = layer_of(inner, reader, clone, original)
  end
  local model = (class or models.Sequential) { name = text_field(content, "name", reader.path), layers = list, dtype = dtype_of(content) }
  rawset(model, "_trainable", content.trainable ~= false)      -- its layers have their own flags
  local shape = given(content.build_input_shape) and content.build_input_shape or given(content.batch_input_shape) and
    content.batch_input_shape
  if shape and not model._built and #list > 0 then
    local plain = { -1 }
    for i = 2, #shape do plain[i] = given(shape[i]) and shape[i] or -1 end
    model:build(plain)
  end
  return model
end

-- The tensor that { layer, call, output } names among those made so far; nil: not made yet.
local function find_tensor(made, history, what)
  if type(history) ~= "table" or type(history[1]) ~= "string" or type(history[2]) ~= "number" or type(history[3]) ~= "number" then
    raise("%s: a call refers to a tensor in a way that is not known", what)
  end
  local calls = made[history[1]]
  if not calls then raise("%s: a call refers to the layer %q, which is not in the model", what, history[1]) end
  local outputs = calls[history[2] + 1]
  if outputs and not outputs[history[3] + 1] then raise("%s: the layer %q has no output %g", what, history[1], history[3]) end
  return outputs and outputs[history[3] + 1]
end

-- The arguments of a call with tensors in place of their names; nil while one of them is not made yet.
local function resolve(value, made, what)
  if type(value) ~= "table" or value == json.null then return value end
  if value.class_name == "__keras_tensor__" then return find_tensor(made, table_field(value, "config", what).keras_history, what) end
  if value.class_name == "__slice__" or value.class_name == "__ellipsis__" then return value end
  local constant = operations.constant(value)
  if constant then return constant end
  local list = {}
  if value[1] == nil then      -- tensors by name
    for name, entry in pairs(value) do
      list[name] = resolve(entry, made, what)
      if list[name] == nil then return nil end
    end
    return list
  end
  for i = 1, #value do
    list[i] = value[i] ~= json.null and resolve(value[i], made, what)      -- false: an entry that is not given
    if list[i] == nil then return nil end
  end
  return list
end

-- kwargs.training does not count: Keras writes its default there for every layer that has the argument, and fit, predict and evaluate
-- overrule it. own_training is what a script of ours gave the call.
local function run_call(layer, call, made, reader, run)
  if type(call) ~= "table" then raise("%s: a call in inbound_nodes is not a table", reader.path) end
  local args = resolve(table_field(call, "args", reader.path), made, reader.path)
  if not args then return nil end
  local kwargs = type(call.kwargs) == "table" and call.kwargs ~= json.null and call.kwargs or {}
  if type(layer) == "function" then
    kwargs = resolve(kwargs, made, reader.path)
    return kwargs and layer(args, kwargs)
  end
  -- several: the layer takes more than one tensor, by position or by name; every other one takes its first argument and a mask.
  local several, list, options = layer._named_inputs or not layer._handle and layer._takes_several, {}, {}
  for name, value in pairs(kwargs) do
    if name ~= "training" and given(value) and not several and not (name == "mask" and layer._takes_mask) then
      raise("%s: the call of %q has the argument %s, which is not supported", reader.path, layer.name or "?", name)
    end
    if given(value) and name ~= "training" then
      options[name] = resolve(value, made, reader.path)
      if options[name] == nil then return nil end
    end
  end
  options.training = call.own_training
  for i = 1, #args do
    if i > 1 and given(args[i]) and not several then
      raise("%s: the call of %q has %d arguments, only one is supported", reader.path, layer.name, #args)
    end
    if given(args[i]) then list[i] = args[i] end
  end
  list[#list + 1] = options
  if run then return gathered(run(layer, unpack(list))) end
  return gathered(layer(unpack(list)))
end

-- What a call gave as a list, in the order of the layer's outputs.
local function outputs_list(layer, result)
  if type(layer) == "table" then result = named_data.outputs_of(layer, result) end
  return type(result) == "table" and not getmetatable(result) and result or { result }
end

-- The other way: makes the layers, then makes their calls as soon as all inputs of a call are there, in rounds over those that wait. A
-- round in which no call could be made means that they wait for each other.
local function read_functional(entry, reader, class)
  local content = table_field(entry, "config", reader.path)
  local made, made_by, waiting, clone = {}, {}, {}, taken_clone(reader)
  for i, inner in ipairs(table_field(content, "layers", reader.path)) do
    local name = given(entry_of(inner, reader.path).name) and inner.name or table_field(inner, "config", reader.path).name
    if type(name) ~= "string" or made[name] then raise("%s: two layers are called %s, or one has no name", reader.path, tostring(name)) end
    local layer = layer_of(inner, reader, clone, clone and clone.model._graph_layers[i])
    made[name], made_by[name] = {}, layer
    if inner.class_name == "InputLayer" then made[name][1] = { layer }
    else
      local calls = table_field(inner, "inbound_nodes", reader.path)
      if #calls > 0 then waiting[#waiting + 1] = { name = name, layer = layer, calls = calls, next = 1 } end
    end
  end
  -- waiting: layers with calls that were not made yet, `next` of them first. Each round makes all calls whose inputs are there, so there
  -- are at most as many rounds as calls; reader.calls counts those that were made, also in models inside.
  while #waiting > 0 do      -- the list need not be in running order
    local left = {}
    local before = reader.calls
    for _, item in ipairs(waiting) do
      while item.next <= #item.calls do
        local result = run_call(item.layer, item.calls[item.next], made, reader, clone and clone.call)
        if result == nil then break end
        made[item.name][item.next] = outputs_list(item.layer, result)
        item.next = item.next + 1
        reader.calls = reader.calls + 1
      end
      if item.next <= #item.calls then left[#left + 1] = item end
    end
    if reader.calls == before then raise("%s: the calls of %q form a circle", reader.path, waiting[1].name) end
    waiting = left
  end
  -- The tensors of input_layers or output_layers: one, a list, lists of lists, or a table by name.
  local ends
  function ends(list, what)
    local is_named = type(list) == "table" and list ~= json.null and list[1] == nil
    if type(list) ~= "table" or list == json.null or next(list) == nil then raise("%s: %s of the model are missing", reader.path, what) end
    if type(list[1]) == "string" then return ends({ list }, what)[1] end
    local tensors = {}
    for i, history in (is_named and pairs or ipairs)(list) do
      local is_nested = type(history) == "table" and type(history[1]) == "table"
      local own = type(history) == "table" and made_by[history[1]]
      if own and object.is(own, models.Functional) and type(history[2]) == "number" then      -- see functional_entry
        history = { history[1], math.max(history[2] - 1, 0), history[3] }
      end
      tensors[i] = is_nested and ends(history, what) or find_tensor(made, history, reader.path)
        or raise("%s: %s of the model are never made", reader.path, what)
    end
    return tensors
  end
  local model = (class or models.Model) { inputs = ends(content.input_layers, "inputs"),
                                          outputs = ends(content.output_layers, "outputs"),
                                          name = given(content.name) and content.name or nil }
  rawset(model, "_trainable", content.trainable ~= false)      -- its layers have their own flags
  return model
end

-- The layer, model or (for an InputLayer) symbolic tensor of an entry. reader: { path =, custom = { name = class }, calls = 0 }.
function config.read(entry, reader)
  local class_name = text_field(entry_of(entry, reader.path), "class_name", reader.path)
  reader.depth = (reader.depth or 0) + 1
  if reader.depth > 64 then raise("%s: models are nested more than 64 deep", reader.path) end
  local result
  local custom = entries.custom_class(entry, reader)
  if custom and type(entry.config) == "table" and given(entry.config.layers) and object.descends(custom, models.Model) then
    local read = given(entry.config.output_layers) and read_functional or read_sequential
    result = read(entry, reader, custom)
  elseif custom then result = entries.read(entry, reader)
  elseif class_name == "InputLayer" then result = input_of(entry, reader.path)
  elseif class_name == "Sequential" then result = read_sequential(entry, reader)
  elseif class_name == "Functional" or class_name == "Model" then result = read_functional(entry, reader)
  elseif operations.knows(entry) then result = operations.read(entry)
  else result = entries.read(entry, reader) end
  reader.depth = reader.depth - 1
  return result
end

---- what is not known --------------------------------------------------------------------------------------------------------------------

-- Adds the names of the layers of an entry whose class is not known to `unknown`, by class; goes no deeper than 64 models.
local function collect_unknown(entry, reader, unknown, depth)
  if type(entry) ~= "table" or entry == json.null or depth > 64 then return end
  local name, content = entry.class_name, entry.config
  if type(name) ~= "string" or type(content) ~= "table" then return end
  if entries.custom_class(entry, reader) or operations.knows(entry) then return end
  if name == "Sequential" or name == "Functional" or name == "Model" then
    local list = type(content.layers) == "table" and content.layers or {}
    for _, inner in ipairs(list) do collect_unknown(inner, reader, unknown, depth + 1) end
  elseif operations.is_of_keras(entry) then
    operations.refuse(entry, reader.path)
  elseif name ~= "InputLayer" and not layers._knows(name) then
    unknown[name] = unknown[name] or {}
    table.insert(unknown[name], tostring(content.name))
  end
  for _, inner in ipairs(entries.inside(content)) do collect_unknown(inner, reader, unknown, depth + 1) end
end

-- Raises one error that lists every class of the file that is not here.
function config.check_classes(entry, reader)
  local unknown, parts = {}, {}
  collect_unknown(entry, reader, unknown, 0)
  for name, users in pairs(unknown) do
    parts[#parts + 1] = ("%s (%s%s)"):format(name, table.concat(users, ", ", 1, math.min(#users, 3)), #users > 3 and ", ..." or "")
  end
  if #parts == 0 then return end
  table.sort(parts)
  raise("%s: it has layers that flowlua does not know: %s; give your own classes as custom_objects = { Name = Class }", reader.path,
    table.concat(parts, ", "))
end

---- copies -------------------------------------------------------------------------------------------------------------------------------

-- Adds the classes of a script that a model and its layers are of, and those that wrappers among them hold, by name.
local function add_own_classes(layer, known)
  local class, is_model = object.class_of(layer), object.is(layer, models.Model)
  local own = rawget(class, "of_script") or rawget(class, "in_lua") and class
  if own and known[layer.class_name] == nil then known[layer.class_name] = own end
  for _, inner in ipairs(is_model and layer.layers or layer._children) do add_own_classes(inner, known) end
end

-- A model like this one with other layers: clone_function(layer) makes each, call_function(layer, ...) calls it; input_tensors are in the
-- place of its Inputs, in their order; recursive: models inside of it are copied in this way, too. custom: classes by name.
function config.clone(model, custom, options)
  local clone = { model = model, layer = options.clone_function, call = options.call_function, recursive = options.recursive,
    inputs = options.input_tensors }
  function clone.again(inner)
    return config.clone(inner, custom, { clone_function = clone.layer, recursive = true,
      call_function = object.is(inner, models.Functional) and clone.call or nil })
  end
  local known = {}
  for name, class in pairs(custom or {}) do known[name] = class end
  add_own_classes(model, known)
  local before = copies_itself
  copies_itself = true
  local ok, entry = pcall(config.entry, model)
  copies_itself = before
  if not ok then error(entry, 0) end
  entry = json.decode(json.encode(entry))
  return config.read(entry, { path = "clone_model", custom = known, calls = 0, clone = clone })
end

entries.above.write, entries.above.read = config.entry, config.read

return config
