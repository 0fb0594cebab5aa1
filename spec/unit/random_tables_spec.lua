-- random_tables_spec.lua: load_csv beside the fields that a random table was written from: short tables and such that threads divide, with
-- and without quotes, blank lines, any line end, a last line without an end. FLOW_CASES=10000 tries this many.
local support = require "spec.support.init"
local flow = require "flow"
local load_csv = require "flow.data.tables"
local message_of = support.message_of

local FIRST, LAST = (require "spec.support.case_numbers")(20)
local LONG = 400000      -- bytes: more than one part

-- Numbers from 0 to below 1 that follow from the case.
local function drawer(number)
  local state = number * 7919 % 2147483647 + 1
  for _ = 1, 5 do state = state * 16807 % 2147483647 end
  return function(low, high)
    state = state * 16807 % 2147483647
    return low + math.floor(state / 2147483647 * (high - low + 1))
  end
end

-- A field of a kind: its text, and what a tensor of it holds.
local FIELDS = {
  whole = function(draw)
    local value = draw(-1000, 1000) * 10 ^ draw(0, 4)
    return ("%d"):format(value), value
  end,
  float = function(draw)
    local text = ({ "%.6f", "%.3e", "%.17g", "%g", " %.4f ", "+%.2f" })[draw(1, 6)]:format(math.abs(draw(-99999, 99999) / 128) )
    return text, tonumber((text:gsub("%+", "", 1)))
  end,
  text = function(draw) return ("w" .. draw(0, 999)):rep(draw(1, 3)) end,
}

-- { text =, names =, kinds =, rows = { { text, ... }, ... }, lines = { line of each row }, values = }
local function random_table(number)
  local draw = drawer(number)
  local count, long, quoted = draw(1, 9), draw(1, 3) == 1, draw(1, 3) == 1
  if draw(1, 20) == 1 then count = draw(100, 700) end
  local made = { names = {}, kinds = {}, rows = {}, lines = {}, values = {}, delimiter = ({ ",", ";", "\t" })[draw(1, 3)] }
  local stop = ({ "\n", "\r\n", "\r" })[draw(1, quoted and 2 or 3)]      -- CR alone ends lines where there is no LF, as in a quoted text
  local pieces, line, bytes = { draw(1, 4) == 1 and "\239\187\191" or "" }, 1, 0
  local function add(text)
    pieces[#pieces + 1] = text
    bytes = bytes + #text
  end
  for i = 1, count do
    made.names[i], made.kinds[i] = "n" .. i, ({ "whole", "float", "text" })[draw(1, 3)]
  end
  add(table.concat(made.names, made.delimiter) .. stop)
  local most = long and LONG or draw(0, 3000)
  while bytes < most do
    line = line + 1
    if draw(1, 30) == 1 then
      add(stop)
    else
      local row, values, written, begins = {}, {}, {}, line
      for i = 1, count do
        row[i], values[i] = FIELDS[made.kinds[i]](draw)
        if made.kinds[i] == "text" and quoted and draw(1, 10) == 1 then row[i] = row[i] .. ({ '"', "\n", made.delimiter })[draw(1, 3)] end
        written[i] = row[i]
        if row[i]:find '[";,\n\t]' then
          written[i] = '"' .. row[i]:gsub('"', '""') .. '"'
          line = line + select(2, row[i]:gsub("\n", ""))
        end
      end
      made.rows[#made.rows + 1], made.values[#made.values + 1], made.lines[#made.lines + 1] = row, values, begins
      add(table.concat(written, made.delimiter) .. stop)
    end
  end
  made.pieces, made.stop = pieces, stop
  if draw(1, 2) == 1 then pieces[#pieces] = pieces[#pieces]:sub(1, -#stop - 1) end      -- no end of the last line
  return made, draw
end

local function write(made) return support.file("random.csv", table.concat(made.pieces)) end

local function check(made, label)
  local columns, names = load_csv(write(made), { delimiter = made.delimiter })
  assert.same(made.names, names, label)
  for i, name in ipairs(names) do
    local column, kind = columns[name], made.kinds[i]
    if kind == "text" and #made.rows > 0 then
      assert.equal(#made.rows, #column, label)
      for row = 1, #made.rows do assert.equal(made.rows[row][i], column[row], label) end
    elseif #made.rows > 0 then
      local found, float = column:totable(), column.dtype == "float32"
      assert.equal(#made.rows, #found, label)
      if kind == "whole" then assert.equal("int64", column.dtype, label) end
      for row = 1, #made.rows do
        local value = made.values[row][i]
        if not (math.abs(tonumber(found[row]) - value) <= (float and 6e-8 * math.abs(value) or 0)) then
          error(("%s: %s of row %d is %s, expected %.17g"):format(label, name, row, tostring(found[row]), value), 0)
        end
      end
    else
      assert.equal(0, #column, label)
    end
  end
end

describe("a random table", function()
  it("is read as it was written, by any number of threads", function()
    finally(function() flow.config.set_threads(0) end)
    for number = FIRST, LAST do
      flow.config.set_threads(number % 3 + 1)
      local made = random_table(number)
      if #made.rows > 0 then check(made, "table " .. number) end
      if number % 10 == 0 then collectgarbage() end
    end
  end)

  it("names the first line that has another number of fields, and the first field of another dtype", function()
    finally(function() flow.config.set_threads(0) end)
    for number = FIRST, LAST do
      flow.config.set_threads(number % 3 + 1)
      local made, draw = random_table(number)
      if #made.rows > 1 then
        local whole = made.pieces
        local function spoil(change)
          local first = draw(2, #made.rows)
          local lines, seen = {}, 0
          for i, piece in ipairs(whole) do      -- the first pieces are the mark and the header; blank lines are separate pieces
            local is_record = i > 2 and piece ~= made.stop and piece ~= ""
            seen = seen + (is_record and 1 or 0)
            lines[i] = is_record and seen >= first and draw(1, 3) >= (seen == first and 1 or 3) and change(piece) or piece
          end
          made.pieces = lines
          return ("line %d"):format(made.lines[first])
        end
        local place = spoil(function(piece) return "1" .. made.delimiter .. piece end)
        local text = message_of(function() load_csv(write(made), { delimiter = made.delimiter }) end)
        local expected = ("%s: %d fields, the first line has %d"):format(place, #made.names + 1, #made.names)
        assert.truthy(text:find(expected, 1, true), ("table %d: %s, expected %s"):format(number, text, expected))
        if made.kinds[1] == "whole" then
          place = spoil(function(piece) return "x" .. piece end)
          text = message_of(function() load_csv(write(made), { delimiter = made.delimiter, dtypes = { n1 = "int64" } }) end)
          assert.truthy(text:find(place .. ', column "n1": "x', 1, true), ("table %d: %s, expected %s"):format(number, text, place))
        end
      end
      if number % 10 == 0 then collectgarbage() end
    end
  end)
end)
