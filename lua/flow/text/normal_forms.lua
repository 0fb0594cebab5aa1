-- normal_forms.lua: the normal forms of Unicode (annex 15): characters are taken apart, marks put in order, and joined again.

local tables = require "flow.text.normal_form_tables"
local buffer = require "flow.text.buffer"

-- Hangul syllables are joined by arithmetic: chapter 3.12 of Unicode.
local S, L, V, T, V_COUNT, T_COUNT, S_COUNT = 0xac00, 0x1100, 0x1161, 0x11a7, 21, 28, 11172

-- What each character is taken apart to, all the way: canonical, and with those of compatibility.
local canonical, compatible, classes, compositions = {}, {}, {}, {}

for first, rest in tables.decompositions:gmatch "(%x+):(%S+)" do
  local mark, parts, count = rest:match "^(<?)([%x,]+)%*?(%d*)$"
  local list = {}
  for part in parts:gmatch "%x+" do list[#list + 1] = tonumber(part, 16) end
  for i = 0, (tonumber(count) or 1) - 1 do
    local own = { unpack(list) }
    own[1] = own[1] + i
    compatible[tonumber(first, 16) + i] = own
    if mark == "" then canonical[tonumber(first, 16) + i] = own end
  end
end
for first, count, class in tables.classes:gmatch "(%x+),(%d+),(%d+)" do
  for i = 0, tonumber(count) - 1 do classes[tonumber(first, 16) + i] = tonumber(class) end
end
do
  local excluded = {}
  for value in tables.excluded:gmatch "%x+" do excluded[tonumber(value, 16)] = true end
  for value, parts in pairs(canonical) do
    if #parts == 2 and not excluded[value] then
      compositions[parts[1]] = compositions[parts[1]] or {}
      compositions[parts[1]][parts[2]] = value
    end
  end
end

-- Calls add(part) for all parts of a character.
local function take_apart(value, parts_of, add)
  if value >= S and value < S + S_COUNT then
    local index = value - S
    add(L + math.floor(index / (V_COUNT * T_COUNT)))
    add(V + math.floor(index / T_COUNT) % V_COUNT)
    if index % T_COUNT > 0 then add(T + index % T_COUNT) end
    return
  end
  local parts = parts_of[value]
  if not parts then return add(value) end
  for _, part in ipairs(parts) do take_apart(part, parts_of, add) end
end

local function composed(a, b)
  if a >= L and a < L + 19 and b >= V and b < V + V_COUNT then return S + ((a - L) * V_COUNT + (b - V)) * T_COUNT end
  if a >= S and a < S + S_COUNT and (a - S) % T_COUNT == 0 and b > T and b < T + T_COUNT then return a + b - T end
  return compositions[a] and compositions[a][b]
end

-- Puts each run of marks in the order of their classes, where those of one class keep their order. list: { value, change }: change is 0
-- for the first part of a character, 1 for the others, and one less for each part that was joined to it.
local function put_in_order(list)
  local at = 1
  while at <= #list do
    if (classes[list[at][1]] or 0) == 0 then at = at + 1
    else
      local stop = at
      while list[stop + 1] and (classes[list[stop + 1][1]] or 0) > 0 do stop = stop + 1 end
      if stop > at then
        local run = {}
        for i = at, stop do run[#run + 1] = { classes[list[i][1]], i, list[i] } end
        table.sort(run, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
        for i, entry in ipairs(run) do list[at + i - 1] = entry[3] end
      end
      at = stop + 1
    end
  end
end

-- Joins characters to those before them where nothing between stands in the way.
local function join(list)
  local made, starter, last = {}, nil, -1      -- where the starter is in made; the class of the last character kept after it
  for _, entry in ipairs(list) do
    local class = classes[entry[1]] or 0
    local found = starter and (last < class or last == -1) and composed(made[starter][1], entry[1])
    if found then made[starter] = { found, made[starter][2] + entry[2] - 1 }
    else
      made[#made + 1] = entry
      if class == 0 then starter, last = #made, -1 else last = class end
    end
  end
  return made
end

-- A buffer in a form: "NFC", "NFD", "NFKC" or "NFKD". Texts of ASCII are in all of them.
return function(form, b)
  if not b.text:find "[\128-\255]" then return b end
  local parts_of, list = form:find "K" and compatible or canonical, {}
  for i = 0, b.n - 1 do
    local change = 0
    take_apart(b.cp[i], parts_of, function(value)
      list[#list + 1] = { value, change }
      change = 1
    end)
  end
  put_in_order(list)
  if form:find "C" then list = join(list) end
  -- Characters come from those of the text in order, as in Hugging Face's library, also where marks changed places.
  local builder, at = buffer.builder(b), 0
  for _, entry in ipairs(list) do
    builder:copy(b, entry[2] > 0 and math.max(at - 1, 0) or at, entry[1])
    if entry[2] <= 0 then at = at + 1 - entry[2] end
  end
  return builder:done()
end
