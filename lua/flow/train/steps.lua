-- steps.lua: a model's training, test and prediction step (model_steps.lua) as plans: traced once per signature, then one C call a batch.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local scopes = require "flow.scopes"
local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local variable = require "flow.tensor.variable"
local signature_of = require "flow.signature"
local tensor = require "flow.tensor"
local placement = require "flow.tensor.placement"
local step_share = require "flow.tensor.step_share"
local devices = require "flow.devices"
local model_steps = require "flow.train.model_steps"
local host_inputs = require "flow.model.host_inputs"
local named_data = require "flow.model.named_data"
local rows_of = require "flow.tensor.rows"
local structure = require "flow.data.structure"
local several = require "flow.layers.several"
local unpack_data = require("flow.utils").unpack_x_y_sample_weight

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local steps = { MOST_OUTPUTS = 256 }      -- of a model

local MAX_STEPS = 8      -- kept per model; the least recently used one goes

local out_plan, out_instance = native.out("flow_plan"), native.out("flow_instance")

---- what a batch looks like ---------------------------------------------------------------------------------------------------

-- The model's part of a signature: which layers and variables are trainable, computed again after a change.
local function trainable_text(model)
  if rawget(model, "_trainable_version") ~= variable.trainable_version then
    rawset(model, "_trainable_signature", model:_trainable_text())
    rawset(model, "_trainable_version", variable.trainable_version)
  end
  return model._trainable_signature
end

-- A batch is a flat list of tensors: inputs, targets, sample weights. layout: { x = count, y = count, weights = count }; weights: 0, 1
-- for all outputs, or one for each. element: they are the components of a data set, which an overridden step gets unchanged; is_x_alone:
-- one tensor, or inputs by name, were given without targets, and an overridden step gets them as they are, too. structure: of elements with
-- parts; of_x: of inputs by name, alone.
local function form_of(model, kind, layout)
  if layout.structure then return structure.text(layout.structure) end
  if layout.element then return "element" end
  local form = layout.is_x_alone and model_steps.overrides(model, kind .. "_step") and "alone" or "arrays"
  return layout.of_x and form .. structure.text { layout.of_x } or form
end

-- A text that is equal for batches which one plan can run: kind, layout, dtypes, all sizes but the rows, what is trainable, precision,
-- device.
local function signature(model, kind, tensors, layout)
  local parts = { kind, layout.x, layout.y, layout.weights, form_of(model, kind, layout), trainable_text(model),
                  C.flow_context_exact(context),
                  devices.name(model._device), model._placement and rawget(model._placement, "apart") and "apart" or "" }
  for i = 1, #tensors do
    local shape = tensors[i].shape
    parts[#parts + 1] = tensors[i].dtype .. "," .. table.concat(shape, ",", 2)
  end
  return table.concat(parts, "|")
end

-- { shape =, dtype = } of a tensor with any number of rows.
local function spec_of(t)
  local shape = { -1 }
  local found = t.shape
  for i = 2, #found do shape[i] = found[i] end
  return { shape = shape, dtype = t.dtype }
end

local function group(list, first, count)
  local part = {}
  for i = 1, count do part[i] = list[first + i - 1] end
  return part
end

local function one_or_list(list)
  return #list == 1 and list[1] or list
end

---- the traced functions -----------------------------------------------------------------------------------------------------------

-- The inputs as the step, or call(), gets them.
local function inputs_of(tensors, layout)
  if layout.of_x then return structure.pack({ layout.of_x }, tensors)[1] end
  return one_or_list(group(tensors, 1, layout.x))
end

-- The `data` that a step gets.
local function data_of(tensors, layout)
  local y, weights = layout.x + 1, layout.x + layout.y + 1
  if layout.structure then
    local values, only = structure.pack(layout.structure, tensors), #layout.structure == 1 and layout.structure[1]
    return only and only.parts and not only.names and values or one_or_list(values)      -- ((x1, x2),) is x alone, of two tensors
  end
  if layout.is_x_alone or layout.element and layout.y == 0 then return inputs_of(tensors, layout) end
  return { inputs_of(tensors, layout), layout.y > 0 and one_or_list(group(tensors, y, layout.y)) or nil,
           layout.weights > 0 and one_or_list(group(tensors, weights, layout.weights)) or nil }
end

local function note_results(model, kind, entries)
  local reported = rawget(model, "_reported") or {}
  reported[kind] = entries
  rawset(model, "_reported", reported)
end

-- The results of the model's method. While it runs scopes.own().model_step says so: metrics.lua.
local function call_step(model, kind, data)
  local own = scopes.own()
  local outer = own.model_step
  return native.between(function() own.model_step = true end, function() own.model_step = outer end, model[kind .. "_step"], model, data)
end

-- Runs the model's step on a batch, in a trace or eagerly. Returns the outputs of prediction; the results of other steps are kept.
local function run_step(model, kind, tensors, layout)
  local results = several.gathered(call_step(model, kind, data_of(tensors, layout)))
  if kind ~= "predict" then
    note_results(model, kind, model_steps.entries(model, kind, results))
    return {}
  end
  results = named_data.flattened(results, native.is_tensor)
  local outputs = native.is_tensor(results) and { results } or named_data.result_list(model, results)
  if type(outputs) ~= "table" or getmetatable(outputs) or outputs[1] == nil then
    raise("%s: predict_step returns a tensor or a list of them, got %s", object.title(model), errors.describe(results))
  end
  if #outputs > steps.MOST_OUTPUTS then
    raise("%s: %d outputs, a model has at most %d", object.title(model), #outputs, steps.MOST_OUTPUTS)
  end
  return outputs
end

-- The key of the random numbers of a model's steps.
function steps.seed(model)
  if not rawget(model, "_seed") then rawset(model, "_seed", C.flow_context_next_seed(context)) end
  return model._seed
end

-- The number of the next step, which keys its random ops, too. Steps that do not train have their own numbers, below those of training,
-- and each of them has another one: predictions of a model that drops, too, differ from call to call, as in Keras.
local UNTRAINED = -2 ^ 52

function steps.number(model, kind)
  return kind == "train" and model._train_steps or UNTRAINED + model._other_steps
end

-- Counts steps of this kind that ran.
function steps.count(model, kind, count)
  local field = kind == "train" and "_train_steps" or "_other_steps"
  rawset(model, field, model[field] + count)
end

-- The latest results of steps of this kind, as numbers by name; nil: there are none.
function steps.results(model, kind)
  local entries = (rawget(model, "_reported") or {})[kind]
  if not entries then return nil end
  local results = {}
  for _, entry in ipairs(entries) do results[entry.key] = model_steps.number(entry) end
  return results
end

-- The inputs of the trace that is open, one for each spec.
local function trace_inputs(specs)
  local tensors = {}
  for i = 1, #specs do tensors[i] = symbolic.trace_input(specs[i].shape, specs[i].dtype) end
  return tensors
end

-- The position of the step that is traced, for messages.
local function where_of(model, kind)
  local info = debug.getinfo(signature_of.unguarded(model[kind .. "_step"]), "S")
  return errors.is_ours(info.source) and object.title(model) or info.short_src .. ":" .. info.linedefined
end

-- Builds every layer by a trace that is thrown away, of a forward pass or of an overridden step: variables exist before the step is traced.
-- If a data set does not tell its sizes, a graph of layers is already built, and other models are built by symbolic tensors.
local function build_here(model, kind, specs, layout)
  local placed, is_own = model._placement, model_steps.overrides(model, kind .. "_step")
  if symbolic.has_unknown(specs) and not is_own then
    if not rawget(model, "inputs") and not rawget(model, "_host") then
      placement.within(placed, symbolic.build, model, group(specs, 1, layout.x))
    end
    return
  end
  local function begin() check(C.flow_trace_begin(context)) end
  symbolic.with_sizes(specs, function(sized)
    tensor.while_tracing(where_of(model, kind), begin, placement.within, placed, function()
      local inputs = trace_inputs(sized)
      if is_own then step_share.within(1, run_step, model, kind, inputs, layout)
      elseif layout.structure then model((unpack_data(data_of(inputs, layout))), { training = false })
      else model(inputs_of(inputs, layout), { training = false }) end
    end)
  end)
end

local function build(model, kind, specs, layout)
  return devices.within(model._device, build_here, model, kind, specs, layout)
end

-- Moves variables and optimizers to the model's device, before a plan refers to them.
local function place(model)
  for _, optimizer in ipairs(model:_optimizers()) do optimizer:_to_device(model._device) end
  for _, v in ipairs(model.variables) do native.try(C.flow_variable_to_device, context, v.handle, model._device) end
  local kept = model:_keeps_states() and require("flow.layers.recurrent.states").list(model) or {}
  for _, v in ipairs(kept) do native.try(C.flow_variable_to_device, context, v.handle, model._device) end
end

-- A model's steps run on the device on which it was made, or on that of the latest flow.device in which one of them was called; a model of
-- a strategy runs on the strategy's devices.
local function settle(model)
  local device = devices.current()
  if device >= 0 and not model._placement then rawset(model, "_device", device) end
end

-- The number of that device, -1: the CPU.
function steps.device(model)
  settle(model)
  return model._device
end

-- Waits until the model's device is idle; raises its failure.
function steps.finish(model)
  if model._device >= 0 then check(C.flow_device_synchronize(context, model._device)) end
end

-- The plan of a step, for inputs of these specs; errors name where the model's step is defined. expected: what placement.expected_rows
-- says, by which the trace chooses how gradients travel between workers; nil or false of a step that does not train.
local function trace_here(model, kind, specs, layout, expected)
  local placed = model._placement
  local function begin() placement.begin_trace(placed, true, expected) end
  return step_share.within(placed and placed.count or 1, tensor.while_tracing, where_of(model, kind), begin, function()
    local list, count = native.pointers(run_step(model, kind, trace_inputs(specs), layout))
    check(C.flow_trace_end(context, list, count, out_plan))
    return native.own(out_plan, C.flow_plan_release)
  end)
end

---- plans ----------------------------------------------------------------------------------------------------------------------------

-- A step is { plan =, instance =, capacity =, part =, key =, running = }; part: rows of one replica at most. While a loop runs it
-- (running > 0), its memory is left to the collector, because the loop still holds the instance. One that runs eagerly is
-- { eager =, capacity =, running = }: eager(tensors, outputs) runs the model's step on a batch; outputs: an array for those of prediction.

local function drop_instance(step)
  if step.instance and step.running == 0 then native.close(step.instance, C.flow_instance_release) end
  step.instance, step.capacity = nil, -1
end

local function drop(step)
  local running = step.running > 0
  drop_instance(step)
  if not running then native.close(step.plan, C.flow_plan_release) end
end

-- Drops all steps of a model, after compile, or when its layers change. Of one that has none the states may be those of a checkpoint, with
-- which its first ones are traced.
function steps.clear(model)
  if #model._steps > 0 then rawset(model, "_trace_states", {}) end
  for i = #model._steps, 1, -1 do drop(table.remove(model._steps, i)) end
  rawset(model, "_all_built", false)
  rawset(model, "_trainable_version", false)
  rawset(model, "_exact_steps", {})
  if rawget(model, "_host") and model._host.calls then rawset(model, "_host", nil) end      -- of a call() that may be another now
end

-- Finds a step by its key and moves it to the end of the list.
local function find(list, key)
  for i = #list, 1, -1 do
    if list[i].key == key then
      local step = table.remove(list, i)
      list[#list + 1] = step
      return step
    end
  end
end

-- Builds every layer that is not built yet, for batches of this kind.
function steps.ensure_built(model, kind, specs, layout)
  if model._all_built then return end
  local resumed = next(model._trace_states) and native.text(C.flow_context_save, context)      -- what building draws was drawn before
  build(model, kind, specs, layout)
  if resumed then check(C.flow_context_restore(context, resumed)) end
  rawset(model, "_all_built", true)
  rawset(model, "_trainable_version", false)
end

-- The plan of a step, traced on the model's device, to which its variables are moved first.
local function trace(model, kind, specs, layout, expected)
  place(model)
  return devices.within(model._device, trace_here, model, kind, specs, layout, expected)
end

-- Traces with the random state of the first trace: numbers that are drawn while tracing become part of the plan, and a run that continues
-- in another process (fit_position.lua) needs the same plan.
local function trace_again(model, key, ...)
  local now, first, own = native.text(C.flow_context_save, context), model._trace_states[key], scopes.own()
  model._trace_states[key] = first or now
  if first then check(C.flow_context_restore(context, first)) end
  local outer = own.draws_owner
  own.draws_owner = { name = key, at = {} }      -- random.lua: next_count
  local ok, plan = pcall(trace, model, ...)
  own.draws_owner = outer
  if first then check(C.flow_context_restore(context, now)) end
  return ok and plan or error(plan, 0)
end

-- A step that runs the model's method for each batch, without a plan. Raises for a model with several replicas.
local function eager_step(model, kind, layout)
  local placed = model._placement
  if placed and placed.count > 1 then
    raise("%s: run_eagerly = true runs on one replica, %s has %d", object.title(model), tostring(placed.strategy), placed.count)
  end
  local function run(tensors) return host_inputs.within(model, run_step, model, kind, tensors, layout) end
  local function eager(tensors, outputs)
    local results = devices.within(model._device, run, tensors)
    for i = 1, outputs and #results or 0 do outputs[i - 1] = C.flow_tensor_retain(native.pointer(results[i])) end
  end
  return { eager = eager, instance = false, capacity = math.huge, running = 0 }
end

-- A step whose plans are for batches of exactly these numbers of rows; it runs one batch at a time. problem: what to say where replicas
-- would share the batches.
local function exact_step(model, kind, layout, problem)
  local placed, counted, own = model._placement, -1, 0
  if placed and placed.count > 1 then
    raise("%s: %s, and %s gives its %d replicas parts of it: %s", object.title(model), problem[1], tostring(placed.strategy), placed.count,
      problem[2])
  end
  -- The step for the numbers of rows of these tensors, which may differ from each other: kept with the model, or traced.
  local function find_or_make(tensors)
    local specs, rows, counts = {}, tensors[1].shape[1], {}
    for i = 1, #tensors do
      specs[i] = spec_of(tensors[i])
      specs[i].shape[1], counts[i] = tensors[i].shape[1], tensors[i].shape[1]
    end
    settle(model)
    steps.ensure_built(model, kind, specs, layout)
    local key = signature(model, kind, tensors, layout) .. "|rows " .. table.concat(counts, " ")
    local step = find(model._steps, key)
    if step then return step end
    step = { plan = trace_again(model, key, kind, specs, layout), instance = nil, capacity = rows, key = key, running = 0 }
    model._traces = model._traces + 1
    native.try(C.flow_instance_new, step.plan, rows, out_instance)
    step.instance = native.own(out_instance, C.flow_instance_release)
    placement.replicate(placed, step.instance)
    table.insert(model._steps, step)
    if #model._steps > MAX_STEPS then drop(table.remove(model._steps, 1)) end
    return step
  end
  local function run(tensors, outputs)
    local step = find_or_make(tensors)
    local number = steps.number(model, kind)
    if counted ~= number then counted, own = number, 0 end
    C.flow_instance_scalars(step.instance, steps.seed(model), counted + own, 0)
    own = own + 1
    local list, count = native.pointers(tensors)
    native.check(C.flow_instance_run(context, step.instance, list, count, kind == "predict" and outputs or nil))
  end
  return { eager = run, instance = false, capacity = math.huge, running = 0, prepare = find_or_make }
end

-- Of a model with layers that keep a state for each row of a batch.
local STATEFUL = { "a layer with stateful = true keeps a state for each row of a batch", "train it on one replica, or without stateful" }
-- Of a model whose own step gets parts with different numbers of rows, as zip gives them of data sets with batches of different sizes.
local UNEQUAL = { "a batch has parts with different numbers of rows", "train it on one replica, or give the parts equally many" }

-- Of a step that computes with a known number of rows: random tensors for batches of 64 in the step of 64 rows, products of rows by rows.
local COUNTED = { "its step needs to know the rows of a batch", "train it on one replica" }

-- The first rows of tensors, as many as a batch has, where they hold more.
local function of_one_batch(tensors, capacity)
  local list = {}
  for i, t in ipairs(tensors) do
    local is_more = native.is_tensor(t) and t.rank > 0 and t.shape[1] > capacity
    list[i] = is_more and rows_of(t, 0, capacity) or t
  end
  return list
end

-- The same step for batches of exactly as many rows as these tensors have, where one for any number could not be traced: flow.fn does so,
-- too. problem: why not, which is raised where this one cannot be traced, either, and where replicas share the rows.
local function counted_step(model, kind, tensors, layout, problem)
  local placed = model._placement
  if placed and placed.count > 1 then error(problem, 0) end
  local step = exact_step(model, kind, layout, COUNTED)
  step.prepare(tensors)
  model._exact_steps[signature(model, kind, tensors, layout)] = true
  return step
end

function steps.of_unequal_rows(model, kind, layout)
  local compiled = model._compiled
  if compiled and compiled.run_eagerly or rawget(model, "_runs_eagerly") then return eager_step(model, kind, layout) end
  return exact_step(model, kind, layout, UNEQUAL)
end

-- The number of replicas that share the rows of a batch: those of all workers, or only the local ones if each worker has its own rows or
-- works alone.
local function parts_of(p, own)
  if not p then return 1 end
  return (own or rawget(p, "apart")) and p.replicas or p.count
end

-- The step for batches like these tensors with any number of rows, found or traced.
local function any_rows(model, kind, tensors, layout, usual)
  local specs, list = {}, model._steps
  for i = 1, #tensors do specs[i] = spec_of(tensors[i]) end
  steps.ensure_built(model, kind, specs, layout)
  local expected = kind == "train" and placement.expected_rows(model._placement, usual)
  local key = signature(model, kind, tensors, layout) .. (expected and "|" .. expected or "")
  local step = find(list, key)
  if step then return step end
  step = { plan = trace_again(model, key, kind, specs, layout, expected), instance = nil, capacity = -1, key = key, running = 0 }
  model._traces = model._traces + 1
  list[#list + 1] = step
  if #list > MAX_STEPS then drop(table.remove(list, 1)) end
  return step
end

-- The step for batches like these tensors with up to `capacity` rows, kept with the model. own: each worker has its own batches; else all
-- workers have the same batches, and each computes its part. usual: the rows of all workers' batches together, which all workers know, or
-- nil.
function steps.get(model, kind, tensors, layout, capacity, own, usual)
  local compiled = model._compiled
  if compiled and compiled.run_eagerly or rawget(model, "_runs_eagerly") then return eager_step(model, kind, layout) end
  if model:_keeps_states() then return exact_step(model, kind, layout, STATEFUL) end
  settle(model)
  if next(model._exact_steps) and model._exact_steps[signature(model, kind, tensors, layout)] then
    local step = exact_step(model, kind, layout, COUNTED)
    step.prepare(of_one_batch(tensors, capacity))      -- what it cannot do is found here, as when it was made first
    return step
  end
  local before = errors.obstacles
  local ok, step = pcall(any_rows, model, kind, tensors, layout, usual)
  if not ok and errors.obstacles == before then error(step, 0) end      -- of the model's own code
  if not ok then return counted_step(model, kind, of_one_batch(tensors, capacity), layout, step) end
  local placed = model._placement
  local part = math.ceil(capacity / parts_of(placed, own))
  if not step.instance or step.part < part or placed and step.placed ~= placed.id then
    drop_instance(step)
    native.try(C.flow_instance_new, step.plan, part, out_instance)
    local instance = native.own(out_instance, C.flow_instance_release)
    placement.replicate(placed, instance)
    step.instance, step.part, step.placed = instance, part, placed and placed.id
  end
  step.capacity = step.part * parts_of(placed, own)
  C.flow_instance_share_rows(step.instance, own and 0 or 1)
  C.flow_instance_request_stop(step.instance, 0)
  return step
end

---- one tensor, again and again -----------------------------------------------------------------------------------------------------

-- Remembers for steps.again that this step of get() predicts for tensors like x, the only input, with this number of outputs.
function steps.remember(model, step, x, outputs)
  local plain = step.instance and not model._placement and not rawget(model, "_host") and model._device < 0
  if not plain then return end
  local dims, rank, dtype = native.dims(x.shape), x.rank, native.dtype(x.dtype)
  rawset(model, "_again", { step = step, outputs = outputs, rank = rank, dims = dims, dtype = dtype,
                            trainable = model._trainable_version, exact = C.flow_context_exact(context) })
end

-- The step that ran last, if it predicts for x, and how many outputs it has; else nil. For servers that ask for a row at a time: get()
-- takes longer than a small model, and leaves tables to the collector.
function steps.again(model, x)
  local latest, list = rawget(model, "_again"), model._steps
  if not latest or list[#list] ~= latest.step or not native.is_tensor(x) or model._placement or rawget(model, "_runs_eagerly") then
    return nil
  end
  local step, p, rank, dims = latest.step, native.pointer(x), latest.rank, latest.dims
  if C.flow_tensor_rank(p) ~= rank or C.flow_tensor_dtype(p) ~= latest.dtype or C.flow_tensor_device(p) >= 0
    or C.flow_tensor_is_contiguous(p) == 0 then return nil end
  local rows = C.flow_tensor_dim(p, 0)
  if rows < 1 or rows > step.capacity then return nil end
  for axis = 1, rank - 1 do
    if C.flow_tensor_dim(p, axis) ~= tonumber(dims[axis]) then return nil end
  end
  if latest.trainable ~= variable.trainable_version or latest.exact ~= C.flow_context_exact(context)
    or devices.current() >= 0 then return nil end
  return step, latest.outputs
end

-- The step of a pass over arrays, { step =, kind =, arrays =, layout =, capacity = rows }. It is made again if it was dropped meanwhile, by
-- a callback that compiles the model, or calls it with many other signatures.
function steps.renew(pass, model)
  if not pass.step or pass.step.capacity < 0 then
    pass.step = steps.get(model, pass.kind, pass.arrays, pass.layout, pass.capacity, false, pass.capacity)
  end
  return pass.step
end

-- One line per op of the step's plan, with the kernel variant that runs it.
function steps.describe(step)
  return native.text(C.flow_instance_describe, step.instance)
end

return steps
