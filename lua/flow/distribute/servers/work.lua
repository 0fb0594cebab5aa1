-- work.lua: work that ps:0 hands out to the workers of an asynchronous training: items of a scope, which are numbered from 0. The
-- chief opens a scope's phases, one after the other (an epoch of fit; what was scheduled until the next join), and closes the scope. A
-- worker that takes an item and is lost leaves it to others, so that each item is done at least once.

local os = require("flow.host").os
local native = require "flow.ffi"
local log = require "flow.log"

local work = { answers = {} }
local answers = work.answers

-- A scope, made when it is first named, by whichever task comes first:
--   phase     from 1; 0: the chief has not opened one
--   count     items of the phase, math.huge where the end is not known yet; next: the first that nobody was given
--   again     items that a lost or slow worker had, to be given before the next one
--   held      by peer: the item that it works on; since: when it was given, in seconds
--   finished  how many items of the phase are done; failed: the message of the first that failed, or nil
--   items     by item: { text =, bytes =, needs = }, for those that the chief describes
--   results   by "phase:item": { text =, bytes =, phase = }
--   reached   by peer: the phase that it last asked for; begun: by name, workers that have asked at all
--   info, bytes   of the phase, for all workers that take part; closed: what followers learn, once the scope is over
local function scope_of(server, name)
  local scope = server.scopes[name]
  if not scope then
    scope = { phase = 0, count = 0, next = 0, again = {}, held = {}, since = {}, finished = 0, items = {}, results = {}, reached = {},
              begun = {} }
    server.scopes[name] = scope
  end
  return scope
end

local function bytes_of(event)
  return event.count > 0 and native.string(event.bytes, tonumber(event.count)) or nil
end

local function pieces_of(text)
  return text and { { native.cast("const char *", text), #text } } or nil
end

local KEPT_FOR_LATE = 64 * 1024 * 1024      -- bytes of results for workers that have not begun

-- Results are kept for the phase that the slowest worker is in, and for the one before: it may still fetch those. One that has not begun
-- will ask for all of them; the oldest go where they take too much.
local function drop_results(server, scope)
  local least, begun, bytes = scope.phase, 0, {}
  for _, phase in pairs(scope.reached) do least = math.min(least, phase) end
  for _ in pairs(scope.begun) do begun = begun + 1 end
  if begun < server.trainers then
    local total = 0
    for _, result in pairs(scope.results) do
      bytes[result.phase] = (bytes[result.phase] or 0) + #(result.text or "") + #(result.bytes or "")
    end
    for phase = scope.phase, 1, -1 do
      total = total + (bytes[phase] or 0)
      if total > KEPT_FOR_LATE then break end
      least = math.min(least, phase)
    end
  end
  for key, result in pairs(scope.results) do
    if result.phase < least - 1 then scope.results[key] = nil end
  end
end

-- Workers of a scope of which a phase ends now go on with the variables that it has left: they take these, and say so, before the chief's
-- next values are there (answers.settled). Also those that have not come to the phase yet, which find that it is over. server.leaving:
-- since when, and of which phase, by peer: a worker that came late may say so of an earlier one.
local function let_leave(server, peers, phase)
  for peer in pairs(peers) do
    if not peer.chief and not peer.is_late then server.leaving[peer] = { since = os.time(), phase = phase or 0 } end
  end
end

-- The workers that are here, whether they have come to a scope or not.
local function workers_here(server)
  local found = {}
  for _, peer in pairs(server.peers) do found[peer] = (peer.name or ""):find("^worker:") and not peer.left or nil end
  return found
end

-- A new phase: `count` items, -1: as many as there are until somebody says that there are no more. info: for all workers that take part,
-- bytes too. settles: workers go on by themselves after the phase before.
function answers.open(server, _, message, event)
  local scope = scope_of(server, message.scope)
  if message.settles and scope.phase > 0 then let_leave(server, workers_here(server), scope.phase) end
  scope.phase, scope.count = math.max(scope.phase, message.after or 0) + 1, message.count >= 0 and message.count or math.huge
  scope.info, scope.bytes = message.info, bytes_of(event)
  scope.next, scope.again, scope.held, scope.finished, scope.items, scope.closed, scope.failed = 0, {}, {}, 0, {}, nil, nil
  drop_results(server, scope)
  return { phase = scope.phase }
end

-- One item more, with its text and bytes. needs: only a worker that knows that number of functions, or more, can do it.
function answers.add(server, _, message, event)
  local scope = scope_of(server, message.scope)
  if scope.failed then return { failed = scope.failed } end
  scope.items[scope.count] = { text = message.item, bytes = bytes_of(event), needs = message.needs }
  scope.count = scope.count + 1
  return { item = scope.count - 1 }
end

-- The scope is over; result: what its followers learn. Later phases may not come.
function answers.close(server, _, message)
  local scope = scope_of(server, message.scope)
  if not scope.closed then let_leave(server, scope.reached) end
  scope.closed = message.result or ""
  return {}
end

-- A worker has taken the variables as the phase that has ended has left them; message.phase: which one, of a scope with several.
function answers.taken(server, peer, message)
  local leaving = server.leaving[peer]
  if leaving and (message.phase or leaving.phase) >= leaving.phase then server.leaving[peer] = nil end
  return {}
end

-- Waits until all workers have done so that are still there.
function answers.settled(server) return next(server.leaving) == nil and {} or nil end

-- Takes what a peer says of the item that it had: message.done its number, ended: there are no items from this one on, failed: its error,
-- result. Counts only for the item that the peer holds in this phase, not for one that another peer was given meanwhile. A message that
-- waits is looked at several times, and noted once. After a failure no further items are given: count becomes what is done and what is
-- held.
local function note_done(scope, peer, message, event)
  if message.done == nil or message.noted then return end
  message.noted = true
  if scope.phase ~= message.phase or scope.held[peer] ~= message.done then return end
  scope.held[peer] = nil
  if message.ended then scope.count = math.min(scope.count, message.done) else scope.finished = scope.finished + 1 end
  if message.failed then
    scope.failed = scope.failed or message.failed
    scope.next, scope.again, scope.count = math.huge, {}, scope.finished      -- and what is held now
    for _ in pairs(scope.held) do scope.count = scope.count + 1 end
  end
  if message.result then
    scope.results[scope.phase .. ":" .. message.done] = { text = message.result, bytes = event and bytes_of(event), phase = scope.phase }
  end
end

-- Whether who knows that number of functions (nil: all) can do an item.
local function fits(scope, item, knows)
  local about = scope.items[item]
  return not knows or not about or not about.needs or about.needs <= knows
end

-- The position in scope.again, or `true` for scope.next, of the next item for a worker that knows that number of functions; nil: none.
local function find_item(scope, knows)
  for position, item in ipairs(scope.again) do
    if item < scope.count and fits(scope, item, knows) then return position end
  end
  return scope.next < scope.count and fits(scope, scope.next, knows) or nil
end

-- Takes an item out of the scope for a worker that knows that number of functions; nil: none is left that it can do.
local function next_item(scope, knows)
  local found = find_item(scope, knows)
  if not found then return nil end
  if found ~= true then return table.remove(scope.again, found) end
  scope.next = scope.next + 1
  return scope.next - 1
end

-- An item, after another one was done; or that there is a new phase, or, for the chief, that all items of this one are done, or that the
-- scope is closed. Else waits.
function answers.take(server, peer, message, event)
  local scope = scope_of(server, message.scope)
  note_done(scope, peer, message, event)
  scope.reached[peer], peer.is_late = message.phase, nil
  scope.begun[peer.name or peer] = true
  if scope.closed then return { closed = scope.closed } end
  if scope.phase == 0 then return nil end
  if scope.phase ~= message.phase then
    return { phase = scope.phase, info = scope.info }, pieces_of(scope.bytes)
  end
  local item = next_item(scope, message.knows)
  if item then
    scope.held[peer], scope.since[peer] = item, os.time()
    local about = scope.items[item]
    return { item = item, text = about and about.text }, about and pieces_of(about.bytes)
  end
  if peer.chief and scope.finished >= scope.count then return { finished = scope.finished, failed = scope.failed } end
  return not message.waits and { wait = true } or nil
end

-- Whether a scope is over.
function answers.is_closed(server, _, message) return { closed = scope_of(server, message.scope).closed ~= nil } end

-- Whether all items of a phase are done.
function answers.status(server, _, message)
  local scope = scope_of(server, message.scope)
  return { done = scope.phase > message.phase or scope.finished >= scope.count, failed = scope.failed }
end

-- The result of an item. Answers as soon as it is known, or, if the peer has work to do meanwhile, at once that it is not known yet.
function answers.result(server, _, message)
  local scope = scope_of(server, message.scope)
  local found = scope.results[message.phase .. ":" .. message.item]
  if not found and scope.failed then return { failed = scope.failed } end
  if not found and scope.phase > message.phase then
    return { error = "a result of schedule is kept until the join after the next one; fetch it before" }
  end
  if not found then return find_item(scope, message.knows) and { wait = true } or nil end
  return { result = found.text }, pieces_of(found.bytes)
end

-- Items that workers have had for more than `limit` seconds go to others as well; a later answer of the late worker is ignored. Nor do the
-- others wait longer for one to take the variables of a phase that has ended.
function work.reclaim(server, limit)
  for peer, leaving in pairs(server.leaving) do
    if os.time() - leaving.since > limit then
      server.leaving[peer], peer.is_late = nil, true      -- until it asks again
      log.warning("ps:%d: %s has not come to the end of what was done together for %d s; the others go on", server.index, peer.name, limit)
    end
  end
  for _, scope in pairs(server.scopes) do
    for peer, item in pairs(scope.held) do
      if os.time() - scope.since[peer] > limit then
        scope.held[peer], scope.reached[peer], peer.clock = nil, nil, nil
        table.insert(scope.again, item)
        log.warning("ps:%d: %s has not answered for %d s; its work goes to other workers", server.index, peer.name, limit)
      end
    end
  end
end

-- A worker is gone.
function work.forget(server, peer)
  server.leaving[peer] = nil
  for _, scope in pairs(server.scopes) do
    local item = scope.held[peer]
    scope.reached[peer] = nil
    if item then
      scope.held[peer] = nil
      table.insert(scope.again, item)
    end
  end
end

return work
