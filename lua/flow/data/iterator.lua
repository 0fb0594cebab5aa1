-- iterator.lua: one pass over a dataset, and the answers to what it asks Lua. A pass that asks (generators, interleave) runs on
-- threads of its own; its questions come back from flow_iterator_next, so that Lua runs only in the thread that called.
--
-- Fields: _handle, the flow_iterator, or false once it is closed; _dataset, kept alive with all that its callbacks need; _element, which C
-- fills; _answer, with which questions are answered; _passes, the state of each callback's passes by "callback:pass"; _keep, data sets that
-- functions made for interleave; _is_text, by component; _report, the figures of a pass that was closed.
--
-- A question is an element with a negative count: `callback` says whose it is, `pass` which pass of that stage, and the components, if any,
-- are what the stage has. It is answered by flow_iterator_answer with an element, a data set, or the text of an error, and
-- flow_iterator_next goes on.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local fn = require "flow.tensor.fn"
local elements = require "flow.data.elements"
local structure = require "flow.data.structure"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local Iterator = object.class("Iterator")
local out = native.out("flow_iterator")

---- callbacks ----------------------------------------------------------------------------------------------------------------

-- By number, which C knows. The Datasets keep them alive.
local callbacks, last_callback = setmetatable({}, { __mode = "v" }), 0

-- begin() returns the function that gives a pass its next list of values; specs: what these are.
function Iterator._register(begin, specs)
  last_callback = last_callback + 1
  callbacks[last_callback] = { id = last_callback, begin = begin, specs = specs }
  return callbacks[last_callback]
end

-- dataset_of(values) returns the Dataset for an element; is_text: of the element's components.
function Iterator._register_function(dataset_of, is_text)
  last_callback = last_callback + 1
  callbacks[last_callback] = { id = last_callback, dataset_of = dataset_of, is_text = is_text }
  return callbacks[last_callback]
end

-- body(pull, give) makes elements of those of inputs, in a coroutine for each pass: pull(input) returns the components of the next element
-- of input number `input` (1), nothing at its end; give(components) hands one over. are_texts: is_text of every input.
function Iterator._register_transform(body, specs, are_texts)
  last_callback = last_callback + 1
  callbacks[last_callback] = { id = last_callback, body = body, specs = specs, are_texts = are_texts }
  return callbacks[last_callback]
end

---- life ------------------------------------------------------------------------------------------------------------------------

-- peeks: leaves no trace in the random state of the dataset.
function Iterator._open(dataset, peeks)
  native.keep(dataset)
  check((peeks and C.flow_iterator_peek or C.flow_iterator_new)(context, dataset._handle, out))
  local is_text = {}
  for i, spec in ipairs(dataset._specs) do is_text[i] = spec.dtype == "string" end
  return object.new(Iterator, {
    _handle = native.own(out, C.flow_iterator_close), _dataset = dataset, _is_text = is_text, _passes = {}, _keep = {},
    _element = native.gc(native.new("flow_element"), C.flow_element_clear), _answer = native.new("flow_element"), _report = false,
  })
end

-- The handle; raises if the iterator was closed.
local function handle_of(self)
  return self._handle or raise("this iterator was closed")
end

-- Batches of rows that come again in every pass are made on the store's device; returns whether these are.
function Iterator:_keep_rows(store)
  return C.flow_iterator_keep_rows(handle_of(self), store) ~= 0
end

-- Stops the threads of the pass; the collector does it, too.
function Iterator:close()
  if not self._handle then return end
  rawset(self, "_report", self:stats())
  native.close(self._handle, C.flow_iterator_close)
  rawset(self, "_handle", false)
  rawset(self, "_passes", {})
end

---- elements ----------------------------------------------------------------------------------------------------------------------

-- The next list of values of a generator's pass; nil at its end.
local function next_values(self, callback, pass)
  local key = callback.id .. ":" .. pass
  local step = self._passes[key]
  if not step then
    step = callback.begin()
    self._passes[key] = step
  end
  local values = step()
  if values[1] ~= nil then return values end
  self._passes[key] = function() return {} end
end

local function pull(input) return coroutine.yield(input or 1) end
local function give(components) coroutine.yield(0, components) end

local END = -1

-- Runs the coroutine of a pass on what it wanted, up to where it wants something or has given two elements, of which the second one waits.
-- Returns the components of an element, or nil, and what is wanted next.
local function run_transform(pass, components)
  local given = pass.ahead
  pass.ahead = nil
  while true do
    local ok, wanted, values = coroutine.resume(pass.thread, components)
    if not ok then error(wanted, 0) end
    components = nil
    if coroutine.status(pass.thread) == "dead" then return given, END end
    if wanted > 0 then return given, wanted end
    if given then
      pass.ahead = values
      return given, 0
    end
    given = values
  end
end

-- The first resume hands the body its arguments.
local function new_transform(callback)
  local thread = coroutine.create(function()
    coroutine.yield()
    callback.body(pull, give)
  end)
  coroutine.resume(thread)
  return { thread = thread, ahead = nil, wanted = 0 }
end

-- The answer of a transform: the next element, or what its body wants to pull (answered.callback).
local function answer_transform(self, callback, element, answered)
  local key = callback.id .. ":" .. tonumber(element.pass)
  local pass = self._passes[key] or new_transform(callback)
  self._passes[key] = pass
  local components
  if element.count < -1 then
    element.count = -1 - element.count
    components = elements.take(element, callback.are_texts[pass.wanted])
  end
  local given, wanted = run_transform(pass, components)
  pass.wanted = wanted
  local anchors = given and elements.fill("transform", answered, given, callback.specs)
  answered.callback = wanted
  return answered, nil, anchors
end

-- Answers a question: returns an element or nil, the handle of a data set or nil, and what has to live until C has taken the answer.
local function answer(self, element)
  local callback, answered = callbacks[element.callback], self._answer
  answered.count = 0
  if not callback then raise("a generator was collected while its data was read") end
  if callback.dataset_of then
    element.count = -1 - element.count
    local dataset = callback.dataset_of((elements.take(element, callback.is_text)))
    self._keep[#self._keep + 1] = dataset      -- its own callbacks must live as long as this pass
    return nil, dataset._handle, dataset
  end
  if callback.body then return answer_transform(self, callback, element, answered) end
  local values = next_values(self, callback, tonumber(element.pass))
  local anchors = values and elements.fill("from_generator", answered, values, callback.specs)
  return answered, nil, anchors
end

-- Fills self._element, answering what is asked on the way. Returns a status. Where it is not 0 because a function of Lua threw something
-- else than a text, self._thrown is that.
function Iterator:_pull()
  local handle, element = handle_of(self), self._element
  self._thrown = nil
  while true do
    local status = tonumber(C.flow_iterator_next(handle, element))
    if status ~= 0 or element.count >= 0 then return status end
    local ok, answered, dataset, anchors = pcall(answer, self, element)
    native.keep(anchors)
    if ok then self._thrown = nil elseif type(answered) ~= "string" then self._thrown = answered end
    C.flow_iterator_answer(handle, ok and answered or nil, ok and dataset or nil, not ok and tostring(answered) or nil)
    self._answer.count = 0
  end
end

-- After a _pull that failed: throws what a function of Lua threw, if that was not a string.
function Iterator:_rethrow()
  if self._thrown ~= nil then error(self._thrown, 0) end
end

-- The components of the next element, side by side, and their number; nothing at the end, which closes the iterator.
function Iterator:_components()
  if not self._handle then return end
  local status = self:_pull()
  if status ~= 0 then self:_rethrow() end
  check(status)
  if self._element.count == 0 then
    self:close()
    return
  end
  return elements.take(self._element, self._is_text)
end

local IN_A_TRACE = "the next element of a data set was asked for in a function that is traced: all runs of the trace would get this one; "
  .. "give the element to the function as an argument"

-- The values of the next element; nothing at the end, which closes the iterator.
function Iterator:next()
  fn.check_untraced(IN_A_TRACE)
  local values, count = self:_components()
  if not values then return end
  local dataset = self._dataset
  if dataset._window then values = dataset._window(values) end
  if dataset._structure then values, count = structure.pack(dataset._structure, values) end
  return unpack(values, 1, count)
end
Iterator._call = Iterator.next

-- The same in TensorFlow's forms.
for name, method in pairs(require "flow.data.optional") do Iterator[name] = method end

---- positions and figures -------------------------------------------------------------------------------------------------------------

-- The position as a text: what random stages drew and how many elements were delivered.
function Iterator:save()
  return native.text(C.flow_iterator_save, handle_of(self))
end

-- The same, as if that many elements fewer had been delivered.
function Iterator:_save_before(back)
  local text = self:save()
  local head, delivered, rest = text:match("^(%S+ %x+ )(%d+)(.*)$")      -- format, pipeline, position, draws (core/data/iterator.c)
  return ("%s%.0f%s"):format(head, delivered - back, rest)
end

-- Whether all elements were delivered, as if it had been `back` fewer; false also where their number is not known.
function Iterator:_is_over(back)
  local known = self._dataset:cardinality()      -- negative if it is not known, or has no end
  return known >= 0 and tonumber(self:save():match("^%S+ %x+ (%d+)")) - back >= known
end

-- Goes to a position that an iterator of an equal pipeline saved, in this process or another.
function Iterator:restore(position)
  if type(position) ~= "string" then raise("restore: a position is a text of save(), got %s", errors.describe(position)) end
  check(C.flow_iterator_restore(handle_of(self), position))
  rawset(self, "_passes", {})
  return self
end

-- What a look at the next pass of the dataset tells of it: how its random stages will draw from here on, and where that pass begins.
function Iterator._look(dataset)
  local look = Iterator._open(dataset, true)
  local position = look:save()
  look:close()
  return position
end

-- Lets the dataset's random stages draw as those of the equal dataset on which _look saved this.
function Iterator._align(dataset, position)
  local look = Iterator._open(dataset, true)
  check(C.flow_iterator_align(look._handle, position))
  look:close()
end

-- Leaves out the next `count` elements, a whole number from 0. Returns the iterator.
function Iterator:skip(count)
  if type(count) ~= "number" then raise("skip: count is a number, got %s", errors.describe(count)) end
  check(C.flow_iterator_skip(handle_of(self), count))
  return self
end

-- What each stage did, from the last one to the first: { name =, depth =, elements =, seconds =, queued =, capacity =, threads =,
-- waited = }.
function Iterator:stats()
  if not self._handle then return self._report end
  local list, report = {}, native.new("flow_stage_report")
  while C.flow_iterator_stage(self._handle, #list, report) ~= 0 do
    list[#list + 1] = { name = native.string(report.name), depth = report.depth, elements = report.elements, seconds = report.seconds,
                        queued = report.queued, capacity = report.capacity, threads = report.threads, waited = report.waited }
  end
  return list
end

return Iterator
