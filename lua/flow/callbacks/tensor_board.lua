-- callbacks/tensor_board.lua: losses, metrics, weights and the model in files that TensorBoard shows: <log_dir>/train and
-- <log_dir>/validation, with Keras' tags.
--
-- Tags and steps are those of keras/src/callbacks/tensorboard.py: epoch_<name> at the epoch, batch_<name> at the number of batches since
-- the fit began, evaluation_<name>_vs_iterations at the optimizer's iterations. Each subfolder has a writer (events.lua) that opens its
-- file at the first record. Of several workers only one writes; the others are _silent and have NOWHERE as their writer.
--
-- Fields: _writers, by subfolder; _batch, batches that began in this fit; _every, batches between two records, or false; _began and
-- _epoch_began, clock times in seconds of the batch and of the epoch; _iterations, the optimizer's when the epoch began; _fits, whether a
-- fit is under way, since evaluate closes its file itself.

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local events = require "flow.callbacks.events"
local callbacks = require "flow.train.callback"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local TensorBoard = callbacks.stock("TensorBoard")

-- log_dir: by default the folder that Vertex AI names in AIP_TENSORBOARD_LOG_DIR, else logs.
signature.takes_named("log_dir?: text, histogram_freq: whole = 0, write_graph: boolean = true, write_images: boolean = false, "
  .. "write_steps_per_second: boolean = false, update_freq: updates = 'epoch', profile_batch: whole = 0, embeddings_freq: whole = 0, "
  .. "embeddings_metadata?: text")
function TensorBoard:init(given)
  callbacks.keep(self, TensorBoard, given)
  local named = host.getenv("AIP_TENSORBOARD_LOG_DIR")
  self.log_dir = given.log_dir or named and named ~= "" and named or "logs"
  if self.profile_batch ~= 0 then raise("TensorBoard: profile_batch is not supported: flow.profile(f) shows where time goes") end
  if self.embeddings_freq ~= 0 or self.embeddings_metadata then raise("TensorBoard: embeddings_freq is not supported") end
  if self.update_freq == "batch" then self.update_freq = 1 end
  self._every = self.update_freq ~= "epoch" and self.update_freq or false      -- batches between two records of them
  self._writers, self._batch, self._began, self._epoch_began, self._iterations, self._fits = {}, 0, 0, 0, 0, false
end

function TensorBoard:_path() return self.log_dir end

-- Writes nothing: another worker does.
local NOWHERE = setmetatable({}, { __index = function() return function() end end })

-- Files are made when the first thing is written to them.
local function writer(self, name)
  if self._silent then return NOWHERE end
  local open = self._writers[name]
  if not open then
    open = events.create_file_writer(require("flow.io").join(self.log_dir, name))
    self._writers[name] = open
  end
  return open
end

-- Closes all files; they are opened again, under new names, when something else is written.
local function close(self)
  local open = self._writers
  self._writers = {}
  for _, each in pairs(open) do each:close() end
end

-- Writes those of the logs that are numbers, sorted by name: equal runs write equal files. name: the subfolder; prefix and suffix: of tags.
local function write_scalars(self, name, prefix, logs, step, suffix)
  local names = {}
  for key, value in pairs(logs) do
    if type(value) == "number" then names[#names + 1] = key end
  end
  table.sort(names)
  for _, key in ipairs(names) do writer(self, name):scalar(prefix .. key .. (suffix or ""), logs[key], step) end
end

-- Raises before an epoch is spent if the folder cannot be written. A model that JSON cannot describe, such as one with functions of Lua, is
-- a warning only.
function TensorBoard:on_train_begin()
  self._batch, self._fits = 0, true
  if not self._silent then
    local io = require "flow.io"
    signature.internal(io).check_writable(io.join(io.path(self.log_dir, "TensorBoard"), "train", "events"), "TensorBoard")
  end
  if not self.write_graph then return end
  local ok, json = pcall(function() return self:_model():to_json() end)
  if ok then
    writer(self, "train"):keras_model("keras", json, 0)
  else
    log.warning("TensorBoard: the model is not written for the tab Graphs: %s", json)
  end
end

function TensorBoard:on_epoch_begin()
  self._epoch_began, self._iterations = C.flow_clock(), self:_model().optimizer.iterations
end

function TensorBoard:on_train_batch_begin()
  self._batch = self._batch + 1
  if self.write_steps_per_second then self._began = C.flow_clock() end
end

function TensorBoard:on_train_batch_end(_, logs)
  if not self._every or self._batch % self._every ~= 0 then return end
  if self.write_steps_per_second then
    writer(self, "train"):scalar("batch_steps_per_second", 1 / (C.flow_clock() - self._began), self._batch)
  end
  write_scalars(self, "train", "batch_", logs, self._batch)
end

function TensorBoard:on_test_end(logs)
  write_scalars(self, "validation", "evaluation_", logs, self:_model().optimizer.iterations, "_vs_iterations")
  if not self._fits then close(self) end
end

-- A weight as pictures {count, height, width, channels}, axes of size 1 left out: a vector is a column, a matrix lies on its longer side,
-- three axes give a picture for each entry of the last one; four are pictures if the last axis has 1, 3 or 4 entries. nil: other shapes
-- give none.
local function weight_pictures(weight)
  local shape = {}
  for _, size in ipairs(weight.shape) do
    if size ~= 1 then shape[#shape + 1] = size end
  end
  if #shape == 1 then return weight:reshape { 1, shape[1], 1, 1 } end
  if #shape == 2 then
    local matrix = weight:reshape { shape[1], shape[2] }
    if shape[1] > shape[2] then matrix = matrix:transpose() end
    return matrix:reshape { 1, matrix.shape[1], matrix.shape[2], 1 }
  end
  if #shape == 3 then
    return weight:reshape(shape):transpose { 3, 1, 2 }:reshape { shape[3], shape[1], shape[2], 1 }
  end
  if #shape == 4 and (shape[4] == 1 or shape[4] == 3 or shape[4] == 4) then return weight:reshape(shape) end
end

-- Writes a histogram of each weight of each layer, and its pictures if they are asked for.
local function write_weights(self, epoch)
  local train = writer(self, "train")
  for _, layer in ipairs(self:_model().layers) do
    for _, weight in ipairs(layer.weights) do
      local name = weight.path:gsub(":", "_")
      local value = weight:value()
      train:histogram(name .. "/histogram", value, epoch)
      local pictures = self.write_images and weight_pictures(value)
      if pictures then train:image(name .. "/image", pictures, epoch) end
    end
  end
end

-- Values of validation go to its own subfolder, under the names without val_, so that both are in one chart.
function TensorBoard:on_epoch_end(epoch, logs)
  local train, validation = { learning_rate = self:_model().optimizer.learning_rate }, {}
  for key, value in pairs(logs) do
    local name = tostring(key)
    if name:find("^val_") then validation[name:sub(5)] = value else train[name] = value end
  end
  if self.write_steps_per_second then
    train.steps_per_second = (self:_model().optimizer.iterations - self._iterations) / (C.flow_clock() - self._epoch_began)
  end
  write_scalars(self, "train", "epoch_", train, epoch)
  write_scalars(self, "validation", "epoch_", validation, epoch)
  if self.histogram_freq > 0 and epoch % self.histogram_freq == 0 then write_weights(self, epoch) end
  for _, open in pairs(self._writers) do open:flush() end
end

function TensorBoard:on_train_end()
  self._fits = false
  close(self)
end

function TensorBoard:get_state()
  return { batch = self._batch }
end

function TensorBoard:set_state(state)
  self._batch = state.batch
end

return TensorBoard
