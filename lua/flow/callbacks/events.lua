-- events.lua: flow.summary: event files that TensorBoard shows, as tf.summary writes them.
--
--   local writer = flow.summary.create_file_writer("logs/run1")
--   writer:scalar("loss", 0.25, step)              step counts from wherever its user likes
--   writer:histogram("weights", tensor, step)      { buckets = 30 }
--   writer:text("note", "some *Markdown*", step)
--   writer:image("picture", tensor, step)          {height, width, channels} or several of them: uint8, or floats from 0 to 1
--   writer:flush()                                 writer:close()

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"

local C, check, raise = native.C, native.check, errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local events = signature.module "flow.summary"

local EventWriter = object.class("EventWriter")
local out = native.out("flow_event_writer")

-- options: filename_suffix (".v2", as TensorFlow).
takes "logdir, { filename_suffix: string = '.v2' }"
function events.create_file_writer(logdir, options)
  local folder, suffix = require("flow.io").path(logdir, "create_file_writer"), options.filename_suffix
  require("flow.io").makedirs(folder)
  check(C.flow_event_writer_new(folder, suffix, out))
  return object.new(EventWriter, { _handle = native.own(out, C.flow_event_writer_release) })
end

-- The writer's handle; raises if it was closed.
local function handle_of(self)
  return self._handle or raise("this writer of events was closed")
end

-- Raises unless the tag is a text and the step a number; the library refuses fractions.
local function check_call(what, tag, step)
  if type(tag) ~= "string" or tag == "" then raise("%s: the tag is a text, got %s", what, errors.describe(tag)) end
  if type(step) ~= "number" then raise("%s: the step of %q is a number, got %s", what, tag, errors.describe(step)) end
end

-- value: a number, or a tensor of one element.
function EventWriter:scalar(tag, value, step)
  check_call("scalar", tag, step)
  if native.is_tensor(value) then value = value:item() end
  if type(value) ~= "number" then raise("scalar: the value of %q is a number, got %s", tag, errors.describe(value)) end
  check(C.flow_event_writer_scalar(handle_of(self), tag, step, value))
end

takes "tag, values, step, { buckets: count = 30 }"
function EventWriter:histogram(tag, values, step, options)
  check_call("histogram", tag, step)
  local tensor = ops.operand(values, nil, "histogram")
  check(C.flow_event_writer_histogram(handle_of(self), tag, step, native.pointer(tensor), options.buckets))
end

function EventWriter:text(tag, text, step)
  check_call("text", tag, step)
  if type(text) ~= "string" then raise("text: the text of %q is a string, got %s", tag, errors.describe(text)) end
  check(C.flow_event_writer_text(handle_of(self), tag, step, text, #text))
end

-- Pictures as uint8 {count, height, width, channels}; floats from 0 to 1 become 0 to 255 as tf.image.convert_image_dtype does it.
local function pictures(tag, images)
  local tensor = ops.operand(images, nil, "image")
  if tensor.rank == 2 then tensor = tensor:reshape { 1, tensor.shape[1], tensor.shape[2], 1 } end
  if tensor.rank == 3 then tensor = tensor:reshape { 1, tensor.shape[1], tensor.shape[2], tensor.shape[3] } end
  if tensor.rank ~= 4 then
    raise("image: %q has %d dimensions, pictures are {height, width, channels} or {count, height, width, channels}", tag, tensor.rank)
  end
  if tensor.dtype:find("float") then tensor = (tensor * 255.5):maximum(0):minimum(255) end
  return tensor:to("uint8"):to("cpu"):contiguous()
end

-- options: max_outputs (3).
takes "tag, images, step, { max_outputs: count = 3 }"
function EventWriter:image(tag, images, step, options)
  check_call("image", tag, step)
  local tensor = pictures(tag, images)
  check(C.flow_event_writer_images(handle_of(self), tag, step, native.pointer(tensor), options.max_outputs))
end

-- What model:to_json() gives: the tab Graphs draws the model's layers.
function EventWriter:keras_model(tag, json, step)
  check_call("keras_model", tag, step)
  if type(json) ~= "string" then raise("keras_model: the model is a text of model:to_json(), got %s", errors.describe(json)) end
  check(C.flow_event_writer_keras_model(handle_of(self), tag, step, json, #json))
end

-- Writes out what was recorded so far, so that readers of the file see it.
function EventWriter:flush()
  check(C.flow_event_writer_flush(handle_of(self)))
end

-- Ends the file; a second call does nothing. The handle is released even if the last bytes cannot be written, which is then an error.
function EventWriter:close()
  if not self._handle then return end
  local handle = self._handle
  rawset(self, "_handle", false)
  local status = C.flow_event_writer_close(handle)
  native.close(handle, C.flow_event_writer_release)
  check(status)
end

function EventWriter.fields.path(self)
  return native.string(C.flow_event_writer_path(handle_of(self)))
end

return events
