-- loop.lua: strategy:run_with_recovery: a training loop that the user wrote, as a stretch that continues after a worker was lost
-- (recovery.lua).
--
-- Before each step a worker notes where its data and its random numbers are. A step has happened when its update has: the optimizers of
-- the checkpoint count. So when a worker is lost, the variables and the note of each other worker say whether it is before a step or after
-- it; all take over the state of the one that is furthest. A step with several updates copies the state at its beginning, so that an
-- incomplete step can be undone. If a worker was stopped after the update of a step, what f does after it is not repeated.
--
-- A worker that was started again makes its first step by itself, so that there are all variables that f makes, before it takes over
-- values.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local datasets = require "flow.distribute.dataset"
local data_draws = require "flow.distribute.data_draws"
local draws = require "flow.distribute.draws"
local recovery = require "flow.distribute.recovery"

local C, raise = native.C, errors.raise
local context = native.context
local loop = {}

local WHAT = "strategy:run_with_recovery"

---- data -----------------------------------------------------------------------------------------------------------------------------

local function begin_pass(self)
  self.pass = self.dataset:iter()
  self.data = { begins = self.pass:_begins(), later = self.dataset:_look(), steps = 0 }
end

-- The next batch, as a list with its length n. A pass that has ended is followed by another one.
local function next_batch(self)
  if not self.dataset then return { n = 0 } end
  for _ = 1, 2 do
    if not self.pass then begin_pass(self) end
    local values = { self.pass:next() }
    if values[1] ~= nil then
      self.data.steps = self.data.steps + 1
      values.n = table.maxn(values)
      return values
    end
    self.pass = false
  end
  raise("%s: the dataset is empty", WHAT)
end

local function close_pass(self)
  if self.pass then self.pass:close() end
  self.pass = false
end

-- Goes to where a worker's data is; rank: this worker's, from 0.
local function set_data(self, data, rank)
  close_pass(self)
  self.data = data
  if not self.dataset then return end
  self.dataset:_align(data.later)
  if not data.begins then return end
  local begins = type(data.begins) == "table" and data.begins[rank + 1] or data.begins
  self.pass = self.dataset:_reopen(begins, data.steps)
end

---- steps ----------------------------------------------------------------------------------------------------------------------------

local function updates_of(self)
  local count = 0
  for _, optimizer in pairs(self.optimizers) do count = count + optimizer:_calls() end
  return count
end

-- A step is about to begin.
local function note(self)
  local data = {}
  for key, value in pairs(self.data) do data[key] = value end
  self.noted = { data = data, draws = draws.save(self.strategy._draws), random = native.text(C.flow_context_save, context),
                 updates = updates_of(self) }
  self.held = self.usual and self.usual > 1 and self.checkpoint:_hold()
end

-- What a failed step has left of this worker's state: it is that of a whole number of steps again, or else of none.
local function settle(self)
  local made = self.noted and updates_of(self) - self.noted.updates or 0
  if made == 0 or not self.runs then return end
  self.runs = false
  if made == self.usual then
    self.done = self.done + 1
    note(self)
  elseif self.held then self.held()
  else self.torn = true end
end

-- One step: ends where this process was asked to, lets workers in that came back, takes the next batch, and calls the user's function. done
-- and made count it only when it is complete.
local function make_step(self)
  if native.preempted() then
    if self.own or self.strategy:_others() then self.strategy:_leave(false) end
    native.raise_interrupted("%s, after step %d: this process was asked to end", WHAT, self.done)
  elseif native.interrupted() then native.raise_interrupted("interrupted") end
  local others = self.own and self.strategy:_others()
  note(self)
  if others then others:let_in() end
  self.runs = true
  local values = next_batch(self)
  if others then others:without_pause(self.f, self.done + 1, unpack(values, 1, values.n))
  else self.f(self.done + 1, unpack(values, 1, values.n)) end
  self.usual = updates_of(self) - self.noted.updates
  self.done, self.runs, self.made = self.done + 1, false, self.made + 1
end

local function make_steps(self)
  while self.done < self.steps do make_step(self) end
  note(self)
end

---- recovery -------------------------------------------------------------------------------------------------------------------------

-- After a generation began: the worker with the newest state gives it to the others, checkpoint, counts, random numbers and places in
-- the data; all go on from the same step.
local function share(self, worker)
  local speaks, state = worker.rank == worker.newest, nil
  local noted = self.noted
  if speaks then
    native.check(C.flow_context_restore(context, noted.random))
    state = { known = data_draws.save(self.own.draws), done = self.done, usual = self.usual, data = noted.data, draws = noted.draws }
  end
  worker:share_random_state()
  local lacking = self.checkpoint:_share(worker)
  state = worker:broadcast_value(state, "the loop")
  if lacking[1] and state.done > 0 then
    raise("%s: this worker was started again and has not made %s, which the others have: its first step has to make all", WHAT, lacking[1])
  end
  data_draws.restore(self.own.draws, state.known)
  self.done, self.usual, self.runs, self.torn = state.done, state.usual, false, false
  draws.restore(self.strategy._draws, state.draws)
  if self.done < self.steps then set_data(self, state.data, worker.rank) end
end

-- Makes what the first step makes, by itself.
local function make_first(self)
  self.f(1, unpack(next_batch(self)))
  close_pass(self)
end

-- The steps as a stretch of recovery.lua: how far this worker is, how its state is shared, and what to run. A worker that was started
-- again makes the first step by itself, so that what a step makes (slots, tables) is there before the newest state is taken over.
local function run_recovering(self)
  local strategy, own = self.strategy, self.own
  recovery.begin(own)
  data_draws.note(own.draws, { self.dataset and self.dataset:_source() or nil })
  data_draws.let_go(own.draws)
  note(self)
  local stretch = {
    step = function()
      settle(self)
      return self.torn and -1 or self.done
    end,
    torn = "a worker was lost in the first step, of which nobody knows yet how many updates it makes",
    where = function() return ("%d"):format(self.done) end,
    share = function(worker) share(self, worker) end,
  }
  local over = recovery.catch_up(own, strategy, stretch, function(where)
    if where ~= "0" and self.steps > 0 then make_first(self) end
  end)
  if over then
    own.inside = false
    return
  end
  recovery.run(own, strategy, stretch, function() make_steps(self) end, function() self.done = self.steps end)
  recovery.leave(own, stretch)
end

-- Raises for options that do not fit: no checkpoint of all that steps change, or a data set of another strategy.
local function check(strategy, options)
  if not object.has(options.checkpoint, "_optimizers") then
    raise("%s: checkpoint is a flow.train.Checkpoint { ... } of all that the steps change, got %s", WHAT,
      errors.describe(options.checkpoint))
  end
  local dataset = options.dataset
  if dataset ~= nil and (not datasets.is(dataset) or dataset._strategy ~= strategy) then
    raise("%s: dataset is one of strategy:experimental_distribute_dataset, got %s", WHAT, errors.describe(dataset))
  end
end

-- options: { steps, checkpoint, dataset }. Interrupts wait until a step has ended. Returns how many steps this process made.
function loop.run(strategy, f, options)
  if type(f) ~= "function" then raise("%s takes a function of a step's number and its batch, got %s", WHAT, errors.describe(f)) end
  check(strategy, options)
  local self = {
    strategy = strategy, own = recovery.of(strategy), f = f, steps = options.steps, checkpoint = options.checkpoint,
    optimizers = options.checkpoint:_optimizers(),
    dataset = options.dataset or false,
    pass = false, data = {},      -- the pass under way; how it begins, how many steps it has given, how later ones draw
    done = 0, made = 0,           -- steps of the state; those that this process has made
    noted = false, runs = false,  -- as it was before the step that runs
    usual = false,                -- updates of a step
    held = false, torn = false,   -- a copy of its beginning; whether a step has left something that is not whole
  }
  if self.dataset then self.data = { later = self.dataset:_look(), steps = 0 } end
  native.defer_interrupts(self.own and not self.own.inside and run_recovering or make_steps, self)
  close_pass(self)
  return self.made
end

return loop
