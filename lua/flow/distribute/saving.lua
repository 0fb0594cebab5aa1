-- saving.lua: who writes a file when several workers run the same program.
--
--   One path on all workers: the chief writes, the others wait until the file is there, and fail if the chief's writing failed.
--   A worker that names its own path writes it itself, also where the chief saves nothing.
--   The chief never waits: a program that saves on the chief only is fine. Once the cluster has ended (strategy:close(), a lost worker),
--   every worker writes by itself.
--
-- All workers have the same values, so it does not matter whose are written. Before the chief writes it publishes the path, by its number
-- among the paths of this place of the program: between two calls that all workers make together, such as two steps. Another worker looks
-- for its path among those that the chief has published in the same place, after the last one it found. If there are only other ones,
-- the path is its own; if there are none, it waits for the next, until the chief is in a later place: then it is its own, too. So a chief
-- that saves more files than the others is handled, with one exception: if the chief first saves a path alone and then one that all save,
-- workers that come earlier take the second path for their own. Then several workers write that file, each whole and with the same content
-- (a temporary file that is renamed).
--
--   saving.once(worker, path, f)      f() writes. Returns what f returned, on all workers: a text or nil; and whether this one called f
--   saving.check_shared(worker, folder, what), check_seen(worker, path, what)     warn where workers do not see what the chief writes
--
-- worker: of worker.lua, or nil: this process is alone.

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local io = require "flow.io"
local log = require "flow.log"

local C, check, raise = native.C, native.check, errors.raise
local saving = {}

local ROOM = 65537          -- bytes of a published text
local FOR_EVER = 1e6        -- seconds; the chief says how it went, or is lost

local busy = false          -- a write that belongs to a larger one is part of it
saving.is_left_to_chief = false      -- this process follows the chief of parameter servers, and writes nothing
saving.prepare = false      -- called before this process writes: what is kept elsewhere comes here

---- texts that workers leave for each other -------------------------------------------------------------------------------------------

-- A text, or nil if there is none within this many seconds. An interrupt in fit, which stops between two batches, does not end it: the
-- chief comes to the same place.
local function lookup(worker, key, within)
  local text, interrupted = native.array("char", ROOM), false
  local status
  repeat
    status = tonumber(C.flow_worker_lookup(worker.handle, key, within, text, ROOM))
    if status == C.FLOW_INTERRUPTED then
      interrupted = true
      C.flow_interrupt(native.context, 0)
    end
  until status ~= C.FLOW_INTERRUPTED
  if interrupted then C.flow_interrupt(native.context, 1) end
  if status == C.FLOW_NOT_FOUND then return nil end
  check(status)
  return native.string(text)
end

-- The chief writes whatever becomes of the others: they find out by themselves that the cluster has ended.
local function publish(worker, key, text)
  local status = C.flow_worker_publish(worker.handle, key, text)
  if status ~= 0 then log.warning("the other workers are not told: %s", native.string(C.flow_last_error())) end
end

local function alive(worker)
  return worker and worker._handle and C.flow_worker_check(worker.handle) == 0
end

-- Where this worker is among the chief's writes of one kind in this place of the program.
local function counter_of(worker, kind)
  local place = C.flow_worker_calls(worker.handle)
  if worker._counters.place ~= place then worker._counters = { place = place } end
  local counters = worker._counters
  counters[kind] = counters[kind] or { seen = 0 }
  return counters[kind], place
end

local function key_of(kind, place, what, number)
  return ("%s %.0f %s%s"):format(kind, place, what, number and (" %d"):format(number) or "")
end

---- the chief ---------------------------------------------------------------------------------------------------------------------------

-- errors.raise tells the position of the worker that raises.
function saving.without_position(message)
  return (tostring(message):gsub("^[^\n]-:%d+: ", "")):sub(1, 4000)
end

-- All workers have met at the end of a place before one goes on, so the texts that were published there are no longer needed.
local function publish_in(worker, place, key, text)
  local published = worker._published
  if published.place ~= place then
    for old in pairs(published.keys or {}) do publish(worker, old, "") end
    published.place, published.keys = place, {}
  end
  published.keys[key] = true
  publish(worker, key, text)
end

-- The chief's part: publishes that it begins to write the path, calls f(), and publishes the result, with which the waiting workers go on
-- or raise. Then raises what f raised. Returns f's result, and true: this worker wrote the file.
local function write_for_all(worker, kind, path, f)
  local counter, place = counter_of(worker, kind)
  counter.seen = counter.seen + 1
  local k = counter.seen
  publish_in(worker, place, key_of(kind, place, "begun", k), path)
  publish_in(worker, place, key_of(kind, place, "begun"), ("%d"):format(k))
  local ok, result = pcall(f)
  local told = ok and "ok " .. tostring(result or "") or "no " .. saving.without_position(result)
  publish_in(worker, place, key_of(kind, place, "done", k), told)
  if not ok then error(result, 0) end
  return result, true
end

---- the others --------------------------------------------------------------------------------------------------------------------------

local LOOK_EVERY = 0.5      -- seconds

-- The path that the chief writes next in this place, under this key; nil: none, the chief has gone on. Raises if it stays here and writes
-- nothing.
local function await_begun(worker, key, path)
  local until_then = C.flow_clock() + worker.timeout
  repeat
    local goes_on = C.flow_worker_chief_is_ahead(worker.handle) ~= 0      -- what it has published before is there now
    local found = lookup(worker, key, goes_on and 0 or LOOK_EVERY)
    if found or goes_on then return found end
  until C.flow_clock() >= until_then
  raise("%s is to be saved, but the chief has saved nothing for %g s: save on all workers, with one path or each with its own, or on "
    .. "the chief only", path, worker.timeout)
end

-- The place and number of the chief's write of this path; nil: it writes other ones, or none.
local function find(worker, kind, path)
  local counter, place = counter_of(worker, kind)
  local latest = tonumber(lookup(worker, key_of(kind, place, "begun"), 0) or 0)
  for k = counter.seen + 1, latest do
    if lookup(worker, key_of(kind, place, "begun", k), 0) == path then
      counter.seen = k
      return place, k
    end
  end
  if latest > counter.seen then
    counter.seen = counter.seen + 1
    return nil
  end
  local found = await_begun(worker, key_of(kind, place, "begun", latest + 1), path)
  if not found then return nil end
  counter.seen = latest + 1
  if found == path then return place, counter.seen end
end

-- The others' part: waits until the chief has written what it began as number k at a place; its result, and false. Raises where the chief
-- failed.
local function wait_for_chief(worker, kind, path, place, k)
  local text = lookup(worker, key_of(kind, place, "done", k), FOR_EVER)
  local result = text:match("^ok (.*)$")
  if not result then raise("the chief did not write %s: %s", path, text:sub(4)) end
  return result ~= "" and result or nil, false
end

---- the rule ----------------------------------------------------------------------------------------------------------------------------

-- Calls f where nothing inside of it asks again.
local function alone(f)
  local before = busy
  busy = true
  local ok, result = pcall(f)
  busy = before
  if not ok then error(result, 0) end
  return result, true
end

-- A worker that is apart: it writes what it has if nobody else does.
local function write_apart(worker, f)
  if worker.behind or worker.rank > 0 and worker.rank ~= worker.newest then return nil, false end
  return alone(f)
end

-- Writes a path once for all workers. A worker that finds that the chief does not write it (its own path) writes it itself. Paths are
-- compared as texts, without "./" and doubled "/".
local function once(worker, path, f, kind)
  if worker.apart then return write_apart(worker, f) end
  local function write() return (alone(f)) end
  kind, path = kind or "save", path:gsub("/+", "/"):gsub("^%./", "")
  if worker.rank == 0 then return write_for_all(worker, kind, path, write) end
  local place, k = find(worker, kind, path)
  if place then return wait_for_chief(worker, kind, path, place, k) end
  return alone(f)
end

-- kind: writes of another kind than users' are counted by themselves.
function saving.once(worker, path, f, kind)
  if saving.is_left_to_chief then return nil, false end
  if saving.prepare and not busy then saving.prepare() end
  if busy or not alive(worker) and not (worker and worker._handle and worker.recovers) then return alone(f) end
  return worker:guard(once, worker, path, f, kind)
end

---- folders that not all workers see ------------------------------------------------------------------------------------------------

local SEEN_WITHIN = 5       -- seconds that a network's file system may take to show a new file

-- nil: the cluster has ended meanwhile, and nobody knows.
local function is_seen(worker, path)
  for _ = 1, SEEN_WITHIN * 10 do
    if io.exists(path) then return true end
    if not pcall(lookup, worker, "nothing", 0.1) then return nil end
  end
  return io.exists(path)
end

local function tell_unshared(what, names, folder)
  log.warning("%s: the workers do not share the folder %s: %s not see what the chief writes there, and without the chief's machine it is "
    .. "lost; name a folder that all of them reach", what, folder, names)
end

-- A file that the chief writes, in the folder: its name, or "" where it cannot be written, which saving will say.
local function leave_token(folder)
  local ok = pcall(io.makedirs, folder)
  local path = ("%s/.shared-%.0f-%d"):format(folder, os.time(), math.floor(os.clock() * 1e6) % 1000000)
  return ok and pcall(io.write, path, "flowlua looks whether all workers see this file\n") and path or ""
end

-- All workers call this with a folder that the chief writes to. If some do not see what it writes, the chief says which, once.
function saving.check_shared(worker, folder, what)
  local path, unseen = worker.rank == 0 and leave_token(folder) or "", {}
  local ok, problem = pcall(function()
    local told
    worker:with_speaker(0, function() told = worker:broadcast_text(path:match "[^/]*$") end)
    local seen = told == "" or is_seen(worker, folder .. "/" .. told) ~= false
    for _, name in ipairs(worker:gather_texts(seen and "" or worker.name)) do
      if name ~= "" then unseen[#unseen + 1] = name end
    end
  end)
  if path ~= "" then pcall(io.remove, path) end
  if not ok then error(problem, 0) end
  if worker.rank > 0 or #unseen == 0 then return end
  local names = table.concat(unseen, ", ", 1, math.min(#unseen, 4)) .. (#unseen > 4 and (" and %d more"):format(#unseen - 4) or "")
  tell_unshared(what, names .. (#unseen == 1 and " does" or " do"), folder)
end

-- After the chief has written this file for all: the first worker that does not see it says so, once.
function saving.check_seen(worker, path, what)
  if not alive(worker) or worker.apart or worker._unshared or is_seen(worker, path) ~= false then return end
  rawset(worker, "_unshared", true)
  local ok, told = pcall(lookup, worker, "unshared", math.min(worker.rank - 1, 10))      -- one after the other, as all see it now
  if not ok or told then return end
  publish(worker, "unshared", worker.name)
  tell_unshared(what, worker.name .. " does", path:match "^(.*)/[^/]*$" or ".")
end

---- files that stay open ----------------------------------------------------------------------------------------------------------------

-- Callbacks that write a file all along (a method _path() says which) do so on the chief; those of other workers with the same path
-- get _silent and write nothing. All workers call this at once, when a loop over data begins.
function saving.divide_files(worker, members)
  local paths, chief = {}, {}
  for _, member in ipairs(members) do
    if member._path then paths[#paths + 1] = member:_path() end
  end
  if alive(worker) then
    local told
    worker:with_speaker(0, function() told = worker:broadcast_text(table.concat(paths, "\0")) end)
    for path in (worker.rank > 0 and told or ""):gmatch("[^%z]+") do chief[path] = true end
  end
  for _, member in ipairs(members) do
    if member._path then rawset(member, "_silent", chief[member:_path()] or false) end
  end
end

return saving
