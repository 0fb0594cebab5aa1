-- layout.lua: where the boxes of a directed graph without cycles are: in layers, so that every edge leads onwards (Sugiyama,
-- Tagawa and Toda 1981): layers by longest paths, order within a layer by barycentres, places by least squares.
--
--   layout.place(boxes, edges)      boxes: { { across =, along = }, ... } sizes; edges: { { from, to }, ... } positions in boxes
--   Each box gets .x (across, its middle) and .y (along, its beginning); each edge .points = { x1, y1, x2, y2, ... }.
--   Returns the size across and along.
--
-- "along" is the direction in which edges lead, "across" the other one; model.lua turns them into right and down. A row is a layer of the
-- drawing. What is placed in a row are points: { box =, across = width, weight =, up =, down = lists of points in the neighbouring rows,
-- row =, position = in the row, x = middle }. A point without a box is the place where an edge passes the row. A layer that a
-- model calls on its own result makes a cycle: boxes of a cycle, and those that it leads to, are placed only by what leads to them from
-- outside of it. Nothing fails then, but not all edges lead onwards.

local layout = {}

local GAP_ACROSS, GAP_ALONG, LANE, SWEEPS = 28, 34, 14, 24

-- The layer of each box: one more than the last of those that lead to it; a box that nothing leads to is just before the first
-- that it leads to.
local function assign_layers(boxes, edges)
  local waits, outgoing, layer, ready = {}, {}, {}, {}
  for i = 1, #boxes do waits[i], outgoing[i], layer[i] = 0, {}, 1 end
  for _, edge in ipairs(edges) do
    waits[edge[2]] = waits[edge[2]] + 1
    table.insert(outgoing[edge[1]], edge[2])
  end
  local sources = {}
  for i = 1, #boxes do
    if waits[i] == 0 then ready[#ready + 1], sources[#sources + 1] = i, i end
  end
  local at = 1
  while ready[at] do
    local i = ready[at]
    for _, target in ipairs(outgoing[i]) do
      layer[target] = math.max(layer[target], layer[i] + 1)
      waits[target] = waits[target] - 1
      if waits[target] == 0 then ready[#ready + 1] = target end
    end
    at = at + 1
  end
  for _, i in ipairs(sources) do
    local first
    for _, target in ipairs(outgoing[i]) do first = math.min(first or layer[target], layer[target]) end
    layer[i] = first and first - 1 or layer[i]
  end
  return layer
end

-- Points: the boxes, and one in each layer that an edge passes. chains[k]: the points of edge k from one box to the other. Returns the
-- rows, which are lists of points, and the chains.
local function make_points(boxes, edges, layer)
  local points, rows, chains = {}, {}, {}
  local function add(point, row)
    point.up, point.down, point.row = {}, {}, row
    points[#points + 1] = point
    rows[row] = rows[row] or {}
    table.insert(rows[row], point)
    return point
  end
  for i, box in ipairs(boxes) do add({ box = box, across = box.across, weight = 1 }, layer[i]) end
  for k, edge in ipairs(edges) do
    local chain = { points[edge[1]] }
    for row = layer[edge[1]] + 1, layer[edge[2]] - 1 do chain[#chain + 1] = add({ across = LANE, weight = 2 }, row) end
    chain[#chain + 1] = points[edge[2]]
    for i = 1, #chain - 1 do
      table.insert(chain[i].down, chain[i + 1])
      table.insert(chain[i + 1].up, chain[i])
    end
    chains[k] = chain
  end
  return rows, chains
end

-- Renews position after a row was sorted.
local function number_points(row)
  for i, point in ipairs(row) do point.position = i end
end

-- The mean position of a point's neighbours on one side; its own where it has none.
local function barycentre(point, side)
  local neighbours, sum = point[side], 0
  if #neighbours == 0 then return point.position end
  for _, other in ipairs(neighbours) do sum = sum + other.position end
  return sum / #neighbours
end

-- How many pairs of edges between neighbouring rows cross: every pair is looked at, which is enough for models of a few hundred layers.
local function crossings(rows)
  local count = 0
  for r = 1, #rows - 1 do
    local ends = {}
    for _, point in ipairs(rows[r]) do
      for _, other in ipairs(point.down) do ends[#ends + 1] = { point.position, other.position } end
    end
    for i = 1, #ends do
      for k = i + 1, #ends do
        if (ends[i][1] - ends[k][1]) * (ends[i][2] - ends[k][2]) < 0 then count = count + 1 end
      end
    end
  end
  return count
end

-- A copy of the order of all rows.
local function remember(rows)
  local order = {}
  for r, row in ipairs(rows) do order[r] = { unpack(row) } end
  return order
end

-- Sorts each row by the barycentres of the row before, forth and back; the order with the fewest crossings stays.
local function order_rows(rows)
  for _, row in ipairs(rows) do number_points(row) end
  local best, least = remember(rows), crossings(rows)
  for sweep = 1, SWEEPS do
    if least == 0 then break end
    local down = sweep % 2 == 1
    for r = down and 2 or #rows - 1, down and #rows or 1, down and 1 or -1 do
      local row = rows[r]
      local key = {}
      for _, point in ipairs(row) do key[point] = barycentre(point, down and "up" or "down") end
      table.sort(row, function(a, b)
        if key[a] ~= key[b] then return key[a] < key[b] end
        return a.position < b.position
      end)
      number_points(row)
    end
    local now = crossings(rows)
    if now < least then best, least = remember(rows), now end
  end
  for r, row in ipairs(best) do
    rows[r] = row
    number_points(row)
  end
end

-- Places of a row as near as possible to where its points want to be, in order and without overlap: isotonic regression by pooling
-- neighbours that are too close. wanted: by point. With the gaps subtracted (offset), "in order and without overlap" is "does not
-- decrease", which pooling solves exactly: two neighbours that would decrease become one pool, at their weighted mean.
local function settle(row, wanted)
  local offset, pools = 0, {}
  for i, point in ipairs(row) do
    if i > 1 then offset = offset + (row[i - 1].across + point.across) / 2 + GAP_ACROSS end
    point.offset = offset
    local pool = { sum = (wanted[point] - offset) * point.weight, weight = point.weight, count = 1 }
    while #pools > 0 and pools[#pools].sum / pools[#pools].weight > pool.sum / pool.weight do
      local before = table.remove(pools)
      pool = { sum = before.sum + pool.sum, weight = before.weight + pool.weight, count = before.count + pool.count }
    end
    pools[#pools + 1] = pool
  end
  local i = 1
  for _, pool in ipairs(pools) do
    for _ = 1, pool.count do
      row[i].x = pool.sum / pool.weight + row[i].offset
      i = i + 1
    end
  end
end

-- The mean place of some points, by their weights. points: not empty.
local function middle(points)
  local sum, weight = 0, 0
  for _, other in ipairs(points) do
    sum = sum + other.x * other.weight
    weight = weight + other.weight
  end
  return sum / weight
end

-- Sweeps forth and back: each row settles where its points' neighbours in the row before it are, as near as order and gaps allow. Points
-- of long edges weigh more, so that these become straight.
local function place_across(rows)
  for _, row in ipairs(rows) do
    local wanted = {}
    for _, point in ipairs(row) do wanted[point] = 0 end
    settle(row, wanted)
  end
  for sweep = 1, SWEEPS do
    local down = sweep % 2 == 1
    local side = down and "up" or "down"
    for r = down and 1 or #rows, down and #rows or 1, down and 1 or -1 do
      local wanted = {}
      for _, point in ipairs(rows[r]) do
        local neighbours = #point[side] > 0 and point[side] or point[down and "down" or "up"]
        wanted[point] = #neighbours > 0 and middle(neighbours) or point.x
      end
      settle(rows[r], wanted)
    end
  end
end

-- Straightens edges over several layers: their points move to one place, if there is one that is free in all the layers.
local function straighten(rows, chains)
  for _, chain in ipairs(chains) do
    local low, high, sum = -math.huge, math.huge, 0
    for i = 2, #chain - 1 do
      local point = chain[i]
      local left, right = rows[point.row][point.position - 1], rows[point.row][point.position + 1]
      if left then low = math.max(low, left.x + (left.across + point.across) / 2 + GAP_ACROSS) end
      if right then high = math.min(high, right.x - (right.across + point.across) / 2 - GAP_ACROSS) end
      sum = sum + point.x
    end
    if #chain > 3 and low <= high then
      local x = math.max(low, math.min(high, sum / (#chain - 2)))
      for i = 2, #chain - 1 do chain[i].x = x end
    end
  end
end

-- See above. The rows' order of work: layers, order, places across, straight edges, and then places along, as high as the highest box of
-- each row.
function layout.place(boxes, edges)
  local rows, chains = make_points(boxes, edges, assign_layers(boxes, edges))
  order_rows(rows)
  place_across(rows)
  straighten(rows, chains)
  local least, most, along = math.huge, -math.huge, 0
  for _, row in ipairs(rows) do
    local height = 0
    for _, point in ipairs(row) do
      least, most = math.min(least, point.x - point.across / 2), math.max(most, point.x + point.across / 2)
      height = math.max(height, point.box and point.box.along or 0)
    end
    for _, point in ipairs(row) do
      local own = point.box and point.box.along or 0
      point.from, point.to = along + (height - own) / 2, along + (height + own) / 2
      if not point.box then point.from, point.to = along, along + height end
    end
    along = along + height + GAP_ALONG
  end
  for _, row in ipairs(rows) do
    for _, point in ipairs(row) do
      point.x = point.x - least
      if point.box then point.box.x, point.box.y = point.x, point.from end
    end
  end
  for k, chain in ipairs(chains) do
    local points = { chain[1].x, chain[1].to }
    for i = 2, #chain - 1 do
      for _, value in ipairs { chain[i].x, chain[i].from, chain[i].x, chain[i].to } do points[#points + 1] = value end
    end
    points[#points + 1], points[#points + 2] = chain[#chain].x, chain[#chain].from
    edges[k].points = points
  end
  return most - least, along - GAP_ALONG
end

return layout
