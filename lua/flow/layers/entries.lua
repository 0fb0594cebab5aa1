-- entries.lua: layers as Keras' config.json describes them (keras.src.saving.serialization_lib), and back. An entry is { module =,
-- class_name =, config =, registered_name =, build_config = }. A layer may have others in its config: Bidirectional has two. Whole models
-- are saving/config.lua's, which says here how they are written and read, since wrappers may hold them, too.
--
-- A reader is what goes along while a file is read: { path = for messages, custom = { name = class }, calls = 0 }.

local native = require "flow.ffi"
local errors = require "flow.errors"
local arguments = require "flow.arguments"
local custom_objects = require "flow.custom_objects"
local object = require "flow.object"
local json = require "flow.json"
local layers = require "flow.layers"
local extended = require "flow.extended"
local Layer = require "flow.layers.layer"
local own_choices = require "flow.layers.own_choices"
local quantization = require "flow.layers.quantization"
local hooks = require "flow.layers.classes.saving_hooks"
local lora = require "flow.layers.kernels.lora"
local boxes = require "flow.layers.images.boxes"

local C, raise = native.C, errors.raise

-- Passed here by the room above: write(layer) and read(entry, reader) of layers and models.
local entries = { above = {} }

---- writing ----------------------------------------------------------------------------------------------------------------------

function entries.shape(shape)
  local list = json.list()
  for i = 1, #shape do list[i] = shape[i] >= 0 and shape[i] or json.null end
  return list
end

local function shapes(shape)
  if type(shape[1]) ~= "table" then return entries.shape(shape) end
  local list = json.list()
  for i = 1, #shape do list[i] = entries.shape(shape[i]) end
  return list
end

function entries.policy(name)
  return { module = "keras", class_name = "DTypePolicy", config = { name = name }, registered_name = json.null }
end

-- The config that all layers of Keras begin with.
function entries.base(layer)
  return { name = layer.name, trainable = layer._trainable, dtype = entries.policy(layer._policy.name) }
end

-- Classes that are not in keras.layers: their modules and the names by which they are registered there. LayerScale is Keras' own, which it
-- does not export; CachedMultiHeadAttention is KerasHub's.
local ELSEWHERE = {
  LayerScale = { "keras.src.applications.convnext", "LayerScale" },
  CachedMultiHeadAttention = { "keras_hub.src.layers.modeling.cached_multi_head_attention", "keras_hub>CachedMultiHeadAttention" },
}

-- The entry of a layer of a built-in class: its config comes from the library, except where Lua has changed the layer.
local function record_entry(layer)
  local name = layer.class_name
  local by_lua = layer._own_choices or rawget(layer, "_lora") or rawget(layer, "_lora_wanted") or rawget(layer, "_box_format")
  local config = by_lua and json.encode(layer:get_config()) or native.text(C.flow_layer_config, layer._handle)
  if quantization.said(layer) then config = json.encode(quantization.as_in_keras(json.decode(config))) end
  local module, registered = unpack(ELSEWHERE[name] or { "keras.layers", json.null })
  return { module = module, class_name = name, registered_name = registered,
           config = json.printed(config) }
end

-- Of a layer that is written in Lua and belongs to flow.layers.
local function own_entry(layer)
  return { module = "keras.layers", class_name = layer.class_name, registered_name = json.null,
           config = json.printed(json.encode(layer:get_config())) }
end

local function custom_entry(layer)
  local registered = custom_objects.registered_name(object.class_of(layer))
  if not hooks.of(layer, "get_config") then require("flow.layers.layer_config").warn_of_lost(layer) end
  return { module = json.null, class_name = layer.class_name, registered_name = registered or layer.class_name,
           config = layer:get_config() }
end

-- The shapes that a layer was built for.
function entries.build_config(layer)
  local shape, named, by_name = rawget(layer, "_input_shape"), rawget(layer, "_named_shapes"), rawget(layer, "_shapes_by_name")
  if by_name then
    local dict = {}
    for name, one in pairs(by_name) do dict[name] = shapes(one) end
    return { input_shape = dict }
  end
  if named and not named[1] then return nil end      -- of a layer written in Lua that is called on several tensors: the call builds it
  if not named or named[1].name:find "%[" then return shape and { input_shape = shapes(shape) } end
  if #named == 1 then return { input_shape = entries.shape(shape[1]) } end
  local dict = {}
  for i, one in ipairs(named) do      -- "state[2]" is entry 2 of a list
    local base, position = one.name:match "^([^%[]*)%[?(%d*)"
    local key = base .. "_shape"
    if position == "" then dict[key] = entries.shape(shape[i])
    else
      dict[key] = dict[key] or json.list()
      dict[key][tonumber(position)] = entries.shape(shape[i])
    end
  end
  return { shapes_dict = dict }
end

-- The entry of a layer, not of a model.
function entries.write(layer)
  local is_record, is_ours = layer._handle and not rawget(layer, "_extended"), layers._in_lua(layer.class_name) == object.class_of(layer)
  local make = is_record and record_entry or is_ours and own_entry or custom_entry
  local entry = make(layer)
  local own = make == custom_entry and hooks.of(layer, "get_build_config")
  entry.build_config = own and layer._built and hooks.to_file(layer:get_build_config()) or entries.build_config(layer)
  if make ~= own_entry and not (make == record_entry and quantization.said(layer)) then      -- those inside of it have their own entries
    entry.quantization = quantization.describe(layer)
  end
  return entry
end

-- The entry of a layer or model inside of another one's config, as a table.
function entries.inner(layer)
  return json.decode(json.encode((entries.above.write or entries.write)(layer)))
end

---- reading ----------------------------------------------------------------------------------------------------------------------

function entries.given(value) return value ~= nil and value ~= json.null end
local given = entries.given

-- The config of a class written in Lua as the options of its constructor; null is what is left out, and lists are plain.
function entries.options(content)
  local options = {}
  for key, value in pairs(content) do
    if key ~= "dtype" and given(value) then options[key] = json.is_list(value) and { unpack(value) } or value end
  end
  arguments.configs[options] = true
  return options
end

-- "float32" of a dtype or of a policy's config; nil: none is given, or the policy has no name, as that of quantized layers.
function entries.dtype(content)
  local dtype = content.dtype
  if type(dtype) == "table" and given(dtype) then
    if type(dtype.config) ~= "table" then
      raise("%s: dtype is an object whose config is %s, expected {\"name\": \"float32\"}",
        type(content.name) == "string" and ("%q"):format(content.name) or "a layer's config", errors.describe(dtype.config))
    end
    dtype = dtype.config.name
  end
  return given(dtype) and dtype or nil
end

-- Axes count from 0 in files, from 1 here: a number, a list of them, or nil; the record refuses all else.
local function axes_of(axis)
  if type(axis) == "number" then return axis >= 0 and axis + 1 or axis end
  if not given(axis) or type(axis) ~= "table" then return nil end
  local list = {}
  for i, one in ipairs(axis) do list[i] = axes_of(one) end
  return list
end

function entries.text_field(entry, name, what)
  local value = entry[name]
  if type(value) ~= "string" then raise("%s: an entry has %s for %s, expected a text", what, errors.describe(value), name) end
  return value
end

-- A field of a file's entry that has to be a table; raises where it is missing or something else. what: for the message.
function entries.table_field(entry, name, what)
  local value = entry[name]
  if type(value) ~= "table" or value == json.null then
    raise("%s: %s is %s, expected a table", what, name, value == json.null and "null" or errors.describe(value))
  end
  return value
end

-- The class that the reader has for an entry, or nil.
function entries.custom_class(entry, reader)
  local registered = type(entry.registered_name) == "string" and entry.registered_name or ""
  return reader.custom[entry.class_name] or reader.custom[registered] or reader.custom[registered:match(">(.*)$") or ""]
end

-- The shape that an entry says the layer was built for, -1 for what is open, nested, or by name, as it is there; nil: it says none.
local function build_shape(entry)
  local shape = type(entry.build_config) == "table" and entry.build_config ~= json.null and entry.build_config.input_shape
  if not given(shape) or type(shape) ~= "table" then return nil end
  local function plain(list)
    local result = {}
    for i, n in pairs(list) do
      if type(n) == "table" and n ~= json.null then result[i] = plain(n)
      else result[i] = type(n) == "number" and n or -1 end
    end
    return result
  end
  return plain(shape)
end

-- What the constructor of a class written in Lua takes. Arguments of a class of the library that it extends are as the library takes them.
local function options_of(class, content)
  local options, base = entries.options(content), extended.base(class)
  if not base or C.flow_layer_class_find(base.name) < 0 then return options end
  for _, name in ipairs { "axis", "axes", "attention_axes" } do options[name] = axes_of(content[name]) end
  return options
end

-- Lua classes build when they are called; a call on symbolic tensors of the shape that the file names will do. The file does not name
-- dtypes: a layer that prepares data gets strings, if it takes them.
local function build_custom(layer, shape)
  if not shape or layer._built then return end
  local function inputs_of(one, dtype)
    local _, first = next(one)
    if type(first) ~= "table" then return layers.Input({ unpack(one, 2) }, { dtype = dtype }) end
    local inputs = {}
    for key, inner in pairs(one) do inputs[key] = inputs_of(inner, dtype) end
    return inputs
  end
  local function call(dtype) layer(inputs_of(shape, dtype)) end
  if not layer:_prepares() or not pcall(call, "string") then call("float32") end
end

-- The layer of a class of the reader's custom objects, which those inside of it may be, too.
local function make_custom(class, entry, content, reader)
  local made
  custom_objects.custom_object_scope(reader.custom, function() made = class.from_config(options_of(class, content)) end)
  if hooks.of(made, "build_from_config") and given(entry.build_config) then
    made:build_from_config(hooks.from_file(entry.build_config))
  else build_custom(made, build_shape(entry)) end
  return made
end

-- The layer of an entry, which is not a model's. A wrapper is built by its first call.
function entries.read(entry, reader)
  local class_name = entries.text_field(entry, "class_name", reader.path)
  local content, custom = entries.table_field(entry, "config", reader.path), entries.custom_class(entry, reader)
  if custom then
    local ok, made = errors.attempt(make_custom, custom, entry, content, reader)
    if not ok then raise("%s: %s, made of its config in the file, failed: %s", reader.path, class_name, tostring(made)) end
    return quantization.restore(made, entry.quantization, reader.path)
  elseif layers._in_lua(class_name) then
    return layers._in_lua(class_name):_from_config(content, reader)
  elseif not layers._knows(class_name) then
    raise("%s: %s is a layer that flowlua does not know", reader.path, class_name)
  end
  local in_floats, quantized = quantization.of_keras(content, class_name, reader.path)
  local rest, chosen = own_choices.read(class_name, in_floats, reader)
  local plain = {}
  for key, value in pairs(rest) do plain[key] = value end
  local change = lora.take(class_name, plain)
  local format = boxes.take(plain)
  if change or format ~= nil then rest = plain end
  local made, shape = Layer._from_json(layers[class_name], json.encode(rest), axes_of(content.axis)), build_shape(entry)
  if chosen then own_choices.give(made, chosen) end
  if change then rawset(made, "_lora_wanted", change) end
  boxes.give(made, format)
  if shape and not made._built then made:build(shape) end
  return quantization.restore(made, quantized or entry.quantization, reader.path)
end

-- The fields of the library's wrappers that hold a layer each.
local INSIDE = { "layer", "backward_layer", "cell" }

local function is_entry(value) return type(value) == "table" and not getmetatable(value) and type(value.class_name) == "string" end

-- A layer of a class from its config. Layers inside of one that extends a wrapper of the library are made of their entries first.
function entries.of_class(class, content)
  local is_ours = layers._in_lua(class.name) == class or rawget(layers, class.name) == class
  local reader = { path = class.name .. ".from_config", custom = custom_objects.all(), calls = 0 }
  if is_ours then return entries.read({ class_name = class.name, config = content }, reader) end
  local options, base = options_of(class, content), extended.base(class)
  if base and layers._in_lua(base.name) == base then
    for _, name in ipairs(INSIDE) do
      if is_entry(options[name]) then options[name] = entries.read_inner(options[name], reader, class.name .. ": " .. name) end
    end
  end
  return class(options)
end

-- The layer or model of an entry inside of another one's config. Its first call builds it.
function entries.read_inner(entry, reader, what)
  if type(entry) ~= "table" or entry == json.null then raise("%s: %s is not the entry of a layer", reader.path, what) end
  local copy = {}
  for key, value in pairs(entry) do copy[key] = value end
  copy.build_config = nil
  return (entries.above.read or entries.read)(copy, reader)
end

-- What entries.options gives, with the dtype, and the layer in place of the entry that the field `name` holds. what: of messages.
function entries.options_with_layer(content, reader, name, what)
  local options = entries.options(content)
  options[name], options.dtype = entries.read_inner(content[name], reader, what .. ": " .. name), entries.dtype(content)
  return options
end

-- The entries of layers that a config names in its own fields: those of a wrapper, a cell, a list of cells.
function entries.inside(content)
  local list = {}
  for _, name in ipairs(INSIDE) do list[#list + 1] = given(content[name]) and content[name] or nil end
  for _, entry in ipairs(type(content.cells) == "table" and content.cells or {}) do list[#list + 1] = entry end
  return list
end

-- Raises unless a layer that takes one tensor was called on one.
function entries.need_one(layer, x)
  if native.is_tensor(x) then return end
  raise("%s: takes 1 input, found %s", object.title(layer), type(x) == "table" and #x or errors.describe(x))
end

---- copies -----------------------------------------------------------------------------------------------------------------------

-- Adds to custom, by name, the classes of a layer and all inside of it that a file does not know by itself: those written in Lua outside of
-- this library.
local function add_classes(layer, custom)
  for _, inside in ipairs(layer:_inside()) do
    if not inside._handle or rawget(inside, "_extended") then
      custom[inside.class_name] = not layers._in_lua(inside.class_name) and object.class_of(inside) or nil
    end
  end
  return custom
end

-- A layer like this one, not built, with some fields of its config changed.
function entries.copy(layer, changes)
  local chosen = layer._own_choices      -- written in Lua: the copy has the same ones, whether files could hold them or not
  rawset(layer, "_own_choices", false)
  local ok, entry = pcall(entries.inner, layer)
  rawset(layer, "_own_choices", chosen)
  if not ok then error(entry, 0) end
  for name, value in pairs(changes) do entry.config[name] = value end
  local made = entries.read_inner(entry, { path = object.title(layer), custom = add_classes(layer, {}), calls = 0 }, "it")
  if chosen then own_choices.give(made, chosen) end
  return made
end

return entries
