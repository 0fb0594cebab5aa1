-- steps.lua: a model's training, test and prediction step as plans: traced once per signature, then one C call a batch.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local variable = require "flow.tensor.variable"
local metrics = require "flow.train.metrics"
local tape = require "flow.tensor.tape"
local placement = require "flow.tensor.placement"
local scopes = require "flow.scopes"
local devices = require "flow.devices"
local ops = require "flow.tensor.replica_ops"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local steps = { MOST_OUTPUTS = 256 }      -- of a model

local MAX_STEPS = 8      -- kept per model; the least recently used one goes

local out_plan, out_instance = native.out("flow_plan"), native.out("flow_instance")

---- what a batch looks like ---------------------------------------------------------------------------------------------------

-- The model's part of a signature: which layers and variables may change, worked out again when any of them was switched.
local function trainable_text(model)
  if rawget(model, "_trainable_version") ~= variable.trainable_version then
    rawset(model, "_trainable_signature", table.concat(model:_trainable_text {}))
    rawset(model, "_trainable_version", variable.trainable_version)
  end
  return model._trainable_signature
end

-- A batch is a flat list of tensors: inputs, targets, sample weights. layout: { x = count, y = count, weights = count }; weights: none, one
-- for all outputs, or one for each.
local function signature(model, kind, tensors, layout)
  local parts = { kind, layout.x, layout.y, layout.weights, trainable_text(model), C.flow_context_exact(context),
                  devices.name(model._device), model._placement and rawget(model._placement, "apart") and "apart" or "" }
  for i = 1, #tensors do
    local shape = tensors[i].shape
    parts[#parts + 1] = tensors[i].dtype .. "," .. table.concat(shape, ",", 2)
  end
  return table.concat(parts, "|")
end

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

local function outputs_of(prediction)
  return native.is_tensor(prediction) and { prediction } or prediction
end

-- The sample weights of an output, or nil.
local function weights_of(weights, output)
  return weights[#weights == 1 and 1 or output]
end

-- How replicas share a loss. A mean over the rows of the batch is the sum over replicas of theirs, times their shares in the rows; a
-- loss that is a sum over the rows is the sum of theirs. nil: there is one replica.
local function share_of(model)
  local p = model._placement
  if not p or p.count == 1 then return nil end
  local of_mean = ops.row_share()
  local has_rows = of_mean:gt(0)
  local function weigh(value) return ops.where(has_rows, value * of_mean, 0) end      -- a mean of no rows may be no number
  return { weigh = weigh, rows = ops.global_rows() }
end

-- The loss that is minimized, the sum over outputs of weight * loss (of several replicas: this one's part of it), and the losses of the
-- outputs.
local function total_loss(model, targets, predictions, weights, share)
  local compiled, total, values = model._compiled, nil, {}
  if next(compiled.losses) and #targets ~= #predictions then
    if #targets == 0 then raise("%s: the loss needs targets, y is nil", object.title(model)) end
    raise("%s: %d targets for %d outputs", object.title(model), #targets, #predictions)
  end
  if compiled.loss_of_each and #predictions > 1 and next(compiled.metrics) then
    raise("%s: call() gives %d outputs; for metrics of several outputs compile takes a list of their losses, and for each its metrics",
      object.title(model), #predictions)
  end
  for i = 1, #predictions do
    local loss = compiled.losses[i] or compiled.loss_of_each
    if loss then
      local value = loss(targets[i], predictions[i], weights_of(weights, i))
      if value.rank > 0 then value = value:mean() end
      if share and loss.reduction ~= "sum" then value = share.weigh(value) end
      values[i] = value
      if compiled.loss_weights[i] then value = value * compiled.loss_weights[i] end
      total = total and total + value or value
    end
  end
  for _, penalty in ipairs(model.losses) do
    if share then penalty = share.weigh(penalty) end
    total = total and total + penalty or penalty
  end
  if not total then raise("No loss to compute. Provide a `loss` argument in `compile()`.") end
  return total, values
end

-- The running means of losses count each batch by its rows, of which this replica has some.
local function update_metrics(model, total, losses, x, targets, predictions, weights, share)
  local compiled = model._compiled
  local rows = metrics.rows(x)
  compiled.loss_tracker:_update_batch(total, rows, share and share.rows)
  for _, entry in ipairs(compiled.output_losses) do entry.metric:_update_batch(losses[entry.output], rows, share and share.rows) end
  for _, entry in ipairs(compiled.metrics) do
    entry.metric:update_state(targets[entry.output], predictions[entry.output], entry.weighted and weights_of(weights, entry.output) or nil)
  end
end

local bodies = {}

function bodies.train(model, inputs, targets, weights)
  local recorder, share = tape.GradientTape(), share_of(model)
  local predictions
  local optimizer = model._compiled.optimizer
  local loss, losses, target = recorder:record(function()
    predictions = outputs_of(model(inputs, { training = true }))
    local total, values = total_loss(model, targets, predictions, weights, share)
    return total, values, optimizer:scale_loss(total)
  end)
  local variables = model.trainable_variables
  if #variables == 0 then raise("%s: there is nothing to train: no layer has trainable variables", object.title(model)) end
  optimizer:apply_gradients(recorder:gradient(target, variables), variables)
  recorder:close()
  update_metrics(model, loss, losses, native.is_tensor(inputs) and inputs or inputs[1], targets, predictions, weights, share)
  return {}
end

function bodies.test(model, inputs, targets, weights)
  local predictions, share = outputs_of(model(inputs, { training = false })), share_of(model)
  local loss, losses = total_loss(model, targets, predictions, weights, share)
  update_metrics(model, loss, losses, native.is_tensor(inputs) and inputs or inputs[1], targets, predictions, weights, share)
  return {}
end

function bodies.predict(model, inputs)
  local outputs = outputs_of(model(inputs, { training = false }))
  if #outputs > steps.MOST_OUTPUTS then
    raise("%s: %d outputs, a model has at most %d", object.title(model), #outputs, steps.MOST_OUTPUTS)
  end
  return outputs
end

-- Builds every layer by a forward pass whose trace is thrown away: variables exist before the step is traced.
local function build_here(model, specs, layout)
  local placed = model._placement
  native.while_tracing(function() check(C.flow_trace_begin(context)) end, placement.within, placed, function()
    local inputs = {}
    for i = 1, layout.x do inputs[i] = symbolic.trace_input(specs[i].shape, specs[i].dtype) end
    model(one_or_list(inputs), { training = false })
  end)
end

local function build(model, specs, layout)
  return devices.within(model._device, build_here, model, specs, layout)
end

-- Variables and optimizer come to the model's device before a plan says where they are.
local function place(model)
  local optimizer = model._compiled and model._compiled.optimizer
  if optimizer then optimizer:_to_device(model._device) end
  for _, v in ipairs(model.variables) do native.try(C.flow_variable_to_device, context, v.handle, model._device) end
end

-- A model's steps run on the device on which it was made, or, later, in whose flow.device one of them was called; those of a strategy's
-- model on the strategy's devices.
local function settle(model)
  local device = devices.current()
  if device >= 0 and not model._placement then rawset(model, "_device", device) end
end

-- Number of that device, -1: the CPU.
function steps.device(model)
  settle(model)
  return model._device
end

-- Waits for what the model's device still does; raises what went wrong there.
function steps.finish(model)
  if model._device >= 0 then check(C.flow_device_synchronize(context, model._device)) end
end

local function trace_here(model, kind, specs, layout, expected)
  local own = scopes.own()
  local outer = own.step
  local function begin() placement.begin_trace(model._placement, true, expected) end
  return native.between(function() own.step = true end, function() own.step = outer end, native.while_tracing, begin, function()
    local tensors = {}
    for i = 1, #specs do tensors[i] = symbolic.trace_input(specs[i].shape, specs[i].dtype) end
    local results = bodies[kind](model, one_or_list(group(tensors, 1, layout.x)), group(tensors, layout.x + 1, layout.y),
      group(tensors, layout.x + layout.y + 1, layout.weights))
    local list, count = native.pointers(results)
    check(C.flow_trace_end(context, list, count, out_plan))
    return native.own(out_plan, C.flow_plan_release)
  end)
end

---- plans ----------------------------------------------------------------------------------------------------------------------------

-- A step is { plan =, instance =, capacity =, part =, key =, running = }; part: rows of one replica at most. While a loop runs it
-- (running > 0), its memory is left to the collector, because the loop still holds the instance.

local function drop_instance(step)
  if step.instance and step.running == 0 then native.close(step.instance, C.flow_instance_release) end
  step.instance, step.capacity = nil, -1
end

local function drop(step)
  local running = step.running > 0
  drop_instance(step)
  if not running then native.close(step.plan, C.flow_plan_release) end
end

-- Forgets all steps of a model: after compile, or when its layers change.
function steps.clear(model)
  for i = #model._steps, 1, -1 do drop(table.remove(model._steps, i)) end
  rawset(model, "_all_built", false)
  rawset(model, "_trainable_version", false)
  rawset(model, "_trace_states", {})
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
function steps.ensure_built(model, specs, layout)
  if model._all_built then return end
  build(model, specs, layout)
  rawset(model, "_all_built", true)
  rawset(model, "_trainable_version", false)
end

local function trace(model, kind, specs, layout, expected)
  place(model)
  return devices.within(model._device, trace_here, model, kind, specs, layout, expected)
end

-- Traces with the random state of the first time: what a traced function draws then is part of the plan, and a run that goes on in
-- another process (fit_position.lua) must have the same plan.
local function trace_again(model, key, ...)
  local now, first = native.text(C.flow_context_save, context), model._trace_states[key]
  if not first then
    model._trace_states[key] = now
    return trace(model, ...)
  end
  check(C.flow_context_restore(context, first))
  local ok, plan = pcall(trace, model, ...)
  check(C.flow_context_restore(context, now))
  return ok and plan or error(plan, 0)
end

-- How many replicas share the rows of a batch: those of all workers, or, if each worker has rows of its own or works apart from the others,
-- the local ones.
local function parts_of(p, own)
  if not p then return 1 end
  return (own or rawget(p, "apart")) and p.replicas or p.count
end

-- The step for batches like these tensors with up to `capacity` rows, kept with the model. own: the batches of each worker are its own;
-- else all workers have the same ones, and each does its part of them. usual: rows of all workers' batches together, as all of them know
-- it, or nil.
function steps.get(model, kind, tensors, layout, capacity, own, usual)
  local specs, list = {}, model._steps
  for i = 1, #tensors do specs[i] = spec_of(tensors[i]) end
  settle(model)
  steps.ensure_built(model, specs, layout)
  local expected = kind == "train" and placement.expected_rows(model._placement, usual)
  local key = signature(model, kind, tensors, layout) .. (expected and "|" .. expected or "")
  local step = find(list, key)
  if not step then
    step = { plan = trace_again(model, key, kind, specs, layout, expected), instance = nil, capacity = -1, key = key, running = 0 }
    model._traces = model._traces + 1
    list[#list + 1] = step
    if #list > MAX_STEPS then drop(table.remove(list, 1)) end
  end
  local placed = model._placement
  local part = math.ceil(capacity / parts_of(placed, own))
  if not step.instance or step.part < part then
    drop_instance(step)
    native.try(C.flow_instance_new, step.plan, part, out_instance)
    local instance = native.own(out_instance, C.flow_instance_release)
    placement.replicate(placed, instance)
    step.instance, step.part = instance, part
  end
  step.capacity = step.part * parts_of(placed, own)
  C.flow_instance_share_rows(step.instance, own and 0 or 1)
  C.flow_instance_request_stop(step.instance, 0)
  return step
end

-- The step of a pass over arrays, { step =, kind =, arrays =, layout =, capacity = rows }, which is made again after something that ran in
-- between dropped it: a callback that compiles the model, or calls it with many other signatures.
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
