-- regex_machine.lua: finds matches of regular expressions with work in proportion to the text. All ways to match are followed at once, one
-- character after the other (R. Pike's machine; R. Cox, "Regular Expression Matching: the Virtual Machine Approach"): a step of the pattern
-- has at most one thread at a place of the text. Of two threads that meet there the one stays that a search by trying would try first.
--
-- Where a match begins and ends is found first, by threads that know only their beginning. Its groups are found by a second run over these
-- characters.

local errors = require "flow.errors"

local raise = errors.raise
local byte = string.byte
local machine = {}

local SET, MATCH, JUMP, SPLIT, SAVE, ASSERT = 1, 2, 3, 4, 5, 6
local MOST_STEPS = 100000      -- of a program: (a{1000}){1000} would take a million

---- trees to programs ---------------------------------------------------------------------------------------------------------

-- A program is three lists: what each step does, and its operands. SET: a set of characters. JUMP: where to. SPLIT: where to first, and
-- where to after that. SAVE: the slot that gets the position: 2 * group - 1 for the beginning, 2 * group for the position after the end.
-- ASSERT: f(text, at).

local EMIT = {}

local function put(program, op, first, second)
  local at = #program.op + 1
  if at > MOST_STEPS then
    raise("regular expression %q: with its repeats written out it has more than %d steps", program.pattern, MOST_STEPS)
  end
  program.op[at], program.first[at], program.second[at] = op, first or 0, second or 0
  return at
end

local function emit(program, node) return EMIT[node.kind](program, node) end

-- Whether a node can match nothing.
local function is_nullable(node)
  local kind = node.kind
  if kind == "set" then return false end
  if kind == "repeat" then return node.low == 0 or is_nullable(node[1]) end
  if kind == "group" then return is_nullable(node[1]) end
  for _, part in ipairs(node) do
    if is_nullable(part) ~= (kind == "sequence") then return kind == "either" end
  end
  return kind ~= "either"
end

function EMIT.empty() end

function EMIT.set(program, node) put(program, SET, node) end

function EMIT.sequence(program, node)
  for _, part in ipairs(node) do emit(program, part) end
end

function EMIT.either(program, node)
  local ends = {}
  for i = 1, #node - 1 do
    local split = put(program, SPLIT)
    program.first[split] = split + 1
    emit(program, node[i])
    ends[i] = put(program, JUMP)
    program.second[split] = #program.op + 1
  end
  emit(program, node[#node])
  for _, jump in ipairs(ends) do program.first[jump] = #program.op + 1 end
end

function EMIT.group(program, node)
  if 2 * node.number > program.slots then return emit(program, node[1]) end
  put(program, SAVE, 2 * node.number - 1)
  emit(program, node[1])
  put(program, SAVE, 2 * node.number)
end

-- Sets the two ways of a SPLIT: on with the repeat, or out of it.
local function set_ways(program, split, lazy, on, out)
  program.first[split], program.second[split] = lazy and out or on, lazy and on or out
end

-- x{low,high} is x low times, then (x(x...)?)? or x*. x* of what may match nothing is (x+)?: its groups are then set in the first round.
EMIT["repeat"] = function(program, node)
  local inner, lazy, splits = node[1], node.lazy, {}
  for _ = 1, node.low - (node.high == math.huge and 1 or 0) do emit(program, inner) end
  if node.high == math.huge then
    local skip = node.low == 0 and put(program, SPLIT)
    local from = #program.op + 1
    emit(program, inner)
    if skip and not is_nullable(inner) then
      put(program, JUMP, skip)
    else
      local again = put(program, SPLIT)
      set_ways(program, again, lazy, from, again + 1)
    end
    if skip then set_ways(program, skip, lazy, from, #program.op + 1) end
    return
  end
  for _ = node.low + 1, node.high do
    splits[#splits + 1] = put(program, SPLIT)
    emit(program, inner)
  end
  for _, split in ipairs(splits) do set_ways(program, split, lazy, split + 1, #program.op + 1) end
end

for _, kind in ipairs { "start", "stop", "border", "inside" } do
  EMIT[kind] = function(program) put(program, ASSERT, program.places[kind]) end
end

---- the machine -----------------------------------------------------------------------------------------------------------------

-- The threads at one place: their steps, in the order in which they would be tried, and what each knows: where it began, or its groups.
local function thread_list() return { count = 0, steps = {}, known = {} } end

local function copied(list, count)
  local copy = {}
  for i = 1, count do copy[i] = list[i] end
  return copy
end

-- Adds the threads that a thread at `step` becomes without reading a character.
local function add(run, list, step, known, at)
  local program, mark, generation = run.program, run.mark, run.generation
  local op, first, second = program.op, program.first, program.second
  local waiting, ways, count = run.waiting, run.ways, 1
  waiting[1], ways[1] = step, known
  while count > 0 do
    step, known = waiting[count], ways[count]
    count = count - 1
    if mark[step] ~= generation then
      mark[step] = generation
      local kind = op[step]
      if kind == SET or kind == MATCH then
        list.count = list.count + 1
        list.steps[list.count], list.known[list.count] = step, known
      elseif kind == ASSERT then
        if first[step](run.text, at) then
          count = count + 1
          waiting[count], ways[count] = step + 1, known
        end
      elseif kind == SAVE then
        if run.has_groups then
          known = copied(known, program.slots)
          known[first[step]] = at
        end
        count = count + 1
        waiting[count], ways[count] = step + 1, known
      else
        if kind == SPLIT then
          count = count + 1
          waiting[count], ways[count] = second[step], known
        end
        count = count + 1
        waiting[count], ways[count] = first[step], known
      end
    end
  end
end

-- The bytes below 128 with which a match may begin, as a set; nil if it may begin with any, or be empty.
local function first_bytes(program)
  local seen, waiting, found = {}, { 1 }, {}
  while #waiting > 0 do
    local step = table.remove(waiting)
    local op, first = program.op[step], program.first[step]
    if op == MATCH then return nil end
    if not seen[step] then
      if op == SET then
        for value in pairs(first.ascii) do found[value] = true end
      elseif op == JUMP or op == SPLIT then waiting[#waiting + 1] = first
      else waiting[#waiting + 1] = step + 1 end
      if op == SPLIT then waiting[#waiting + 1] = program.second[step] end
      seen[step] = true
    end
  end
  for value = 0, 127 do
    if not found[value] then return found end
  end
end

-- The first match in run.text from the position `from` on: what its thread knows, and the position after it. is_fixed: only one that begins
-- there; whole: only one that ends with the text.
local function search(run, from, is_fixed, whole)
  local program, text, character, in_set = run.program, run.text, run.character, run.in_set
  local here, next_list = run.here, run.following
  local best, best_stop
  here.count = 0
  local at, size, starts = from, #text, not is_fixed and run.starts
  while true do
    if starts and here.count == 0 and not best then
      local value = byte(text, at)
      while value and value < 128 and not starts[value] do
        at = at + 1
        value = byte(text, at)
      end
    end
    if not best and (at == from or not is_fixed) then
      add(run, here, 1, run.has_groups and run.none or at, at)      -- after those that began earlier
    end
    if here.count == 0 and (best or is_fixed) then break end
    local value, following = character(text, at)
    run.generation = run.generation + 1
    next_list.count = 0
    for i = 1, here.count do
      local step = here.steps[i]
      if program.op[step] == MATCH then
        if not whole or at == size + 1 then
          best, best_stop = here.known[i], at
          break      -- the others would have been tried later
        end
      elseif value and in_set(program.first[step], value) then
        add(run, next_list, step + 1, here.known[i], following)
      end
    end
    run.count(here.count + 1)
    if not value then break end
    here, next_list, at = next_list, here, following
  end
  return best, best_stop
end

-- search(text, from) -> first, last, groups of the first match from that position on, or nil: groups[n] is { first, last } of group n, or
-- nil. tree: of the pattern, whose first `groups` groups are wanted. tools: { character =, in_set =, places = { start = f(text, at) } }.
-- whole: only a match of all that is left. count(n) is called when n threads were moved, and raises when these are too many.
function machine.compile(pattern, tree, groups, tools, whole, count)
  local program = { pattern = pattern, op = {}, first = {}, second = {}, slots = 2 * groups, places = tools.places }
  emit(program, tree)
  put(program, MATCH)
  local run = { program = program, text = "", character = tools.character, in_set = tools.in_set, count = count,
                starts = first_bytes(program), has_groups = false, none = {}, mark = {}, generation = 0,
                here = thread_list(), following = thread_list(), waiting = {}, ways = {} }
  for i = 1, #program.op do run.mark[i] = 0 end
  for i = 1, program.slots do run.none[i] = false end
  return function(text, from)
    run.text, run.has_groups, run.generation = text, false, run.generation + 1
    local first, stop = search(run, from, whole, whole)
    if not first then return nil end
    local found
    if groups > 0 then
      found = {}
      run.has_groups, run.generation = true, run.generation + 1
      local slots = search(run, first, true, whole)
      for i = 1, groups do
        if slots[2 * i] then found[i] = { slots[2 * i - 1], slots[2 * i] - 1 } end
      end
    end
    return first, stop - 1, found
  end
end

return machine
