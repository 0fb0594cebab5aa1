-- crew.lua: what a worker of an asynchronous training does with the work that ps:0 hands out (work.lua): it takes an item and
-- the variables, computes, sends what has changed, and takes the next one.

local native = require "flow.ffi"
local errors = require "flow.errors"
local codec = require "flow.state_codec"
local json = require "flow.json"
local tensor = require "flow.tensor"

local C, raise = native.C, errors.raise
local crew = {}

---- values in messages -------------------------------------------------------------------------------------------------------------------

-- A value (state_codec.lua) as text and pieces of bytes.
function crew.encode(value, what)
  local tensors, about = {}, {}
  local text = codec.encode(value, function(t)
    tensors[#tensors + 1] = tensor.on_host(t):contiguous()
    return ("%d"):format(#tensors)
  end, what)
  local n = #tensors
  local pieces = { n = n, keep = tensors, at = native.array("const void *", n + 1), bytes = native.array("int64_t", n + 1) }
  for i, t in ipairs(tensors) do
    pieces.at[i - 1], pieces.bytes[i - 1] = native.data(t), t.size * C.flow_dtype_size(native.dtype(t.dtype))
    about[i] = { dtype = t.dtype, shape = json.list { unpack(t.shape) } }
  end
  return json.encode { value = text, tensors = json.list(about) }, pieces
end

-- And back; bytes: `count` of them.
function crew.decode(text, bytes, count, what)
  local described, tensors, offset = json.decode(text, what), {}, 0
  for i, about in ipairs(described.tensors) do
    local t = tensor.new(native.dtype(about.dtype), { unpack(about.shape) })
    local size = t.size * C.flow_dtype_size(native.dtype(about.dtype))
    if offset + size > count then raise("%s: a message has %.0f bytes of tensors, too few", what, count) end
    native.copy(native.data(t), bytes + offset, size)
    tensors[i], offset = t, offset + size
  end
  return codec.decode(described.value, function(name) return tensors[tonumber(name)] end, what)
end

---- the loop ------------------------------------------------------------------------------------------------------------------------------

-- One question, and what it takes. state: { message =, pieces =, fresh =, phase = }. Returns the answer that ends the loop, or nil.
local function turn(store, job, state)
  local said, bytes, count = store.links:ask(1, state.message, state.pieces)
  state.message, state.pieces = { is = "take", scope = job.scope, phase = state.phase, knows = job.knows }, nil
  if said.closed or said.finished or said.phase and not job.begin then
    store:pace(false)
    return said
  elseif said.wait then
    store:pace(false)                      -- nobody waits for a worker that has nothing to do
    if job.returns then return said end
    state.message.waits, state.fresh = true, false
  elseif said.phase then
    state.phase, state.message.phase, state.fresh = said.phase, said.phase, false
    job.begin(said, bytes, count)
  else
    local read = job.read and job.read(said, bytes, count)
    store:pace(true)
    if not state.fresh then store:pull() end
    local how = job.run(said.item, read) or {}
    if not how.ended and not how.failed then store:push() end
    state.fresh = true
    local message = state.message
    message.done, message.ended, message.failed, message.result, state.pieces = said.item, how.ended, how.failed, how.result, how.pieces
  end
end

-- After a server was lost and is there again: what this process had taken others have got. What ps:0 has handed out is gone with it.
local function go_on(store, job, state)
  if store.links.renewed[1] then
    if not job.again then
      raise("ps:0 was lost, and with it what was scheduled: start the job again")
    end
    state.phase = job.again(state.phase)
  end
  store.links.renewed = {}
  state.message, state.pieces, state.fresh = { is = "take", scope = job.scope, phase = state.phase, knows = job.knows }, nil, false
end

-- Takes items of a scope's phase. job: { scope =, phase =,
--   read(said, bytes, count)     reads what is said of an item, or nil
--   run(item, read)              computes it and returns how it went: { ended = the data has no such item, result =, pieces =, failed = }
--   begin(said, bytes, count)    a new phase, after which it goes on; without it a new phase ends the loop
--   again(phase)                 ps:0 is another one, which knows nothing of this phase: returns which one it is now; nil: there is none
--   returns =                    the loop ends when there is nothing to do now, else it waits
--   knows =                      the number of functions of the scope that this process has met; nil: it can do all items }
-- Returns the last answer.
function crew.work(store, job)
  local state = { phase = job.phase, fresh = false,
                  message = { is = "take", scope = job.scope, phase = job.phase, knows = job.knows } }
  while true do
    local ok, said = pcall(turn, store, job, state)
    if ok and said then return said end
    if not ok then
      store:recover(said)
      store:surely(function() go_on(store, job, state) end)
    end
  end
end

return crew
