-- picture_boxes.lua: tf.image's functions of boxes {top, left, bottom, right}. flow.image loads it when one of them is asked for.

local native = require "flow.ffi"
local errors = require "flow.errors"
local image = require "flow.tensor.image"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local signature = require "flow.signature"

local ops, takes, raise = tools.ops, signature.takes, errors.raise

---- suppression ------------------------------------------------------------------------------------

-- The doubles of a box, with its corners in order: top, left, bottom, right, area.
local function corners(values, first)
  local a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
  if a > c then a, c = c, a end
  if b > d then b, d = d, b end
  return { a, b, c, d, (c - a) * (d - b) }
end

-- The share of their common area in the area of both.
local function overlap(a, b)
  local height = math.min(a[3], b[3]) - math.max(a[1], b[1])
  local width = math.min(a[4], b[4]) - math.max(a[2], b[2])
  if height <= 0 or width <= 0 or a[5] <= 0 or b[5] <= 0 then return 0 end
  return height * width / (a[5] + b[5] - height * width)
end

-- Numbers from 0 of at most `most` of n boxes, the best first, of which none overlaps a better one by more than iou. box(i), score(i).
local function suppress(n, box, score, most, iou, least)
  local order, taken = {}, {}
  for i = 0, n - 1 do
    if score(i) > least then order[#order + 1] = i end
  end
  table.sort(order, function(i, j) return score(i) > score(j) or score(i) == score(j) and i < j end)
  for _, i in ipairs(order) do
    if #taken >= most then break end
    local own, stays = box(i), true
    for _, other in ipairs(taken) do stays = stays and overlap(own, other.box) <= iou end
    if stays then taken[#taken + 1] = { number = i, box = own } end
  end
  for k, entry in ipairs(taken) do taken[k] = entry.number end
  return taken
end

-- The sizes of x; raises unless they are those wanted, false for any.
local function check_dims(x, what, name, ...)
  local dims = tools.dims(x)
  local wanted = { ... }
  local same = #dims == #wanted
  for i, n in ipairs(wanted) do same = same and (n == false or dims[i] == n) end
  if not same then
    for i, n in ipairs(wanted) do wanted[i] = n or "n" end
    raise("flow.image.%s: %s have shape {%s}, got %s", what, name, table.concat(wanted, ", "), tensor.shape_text(dims))
  end
  return dims
end

local function eager(x, what)
  x = ops.operand(x, nil, "flow.image." .. what)
  tensor.need_value(x, "flow.image." .. what)
  return x
end

local function check_threshold(iou, what)
  if not (iou >= 0 and iou <= 1) then raise("flow.image.%s: iou_threshold is from 0 to 1, got %g", what, iou) end
end

-- Positions, from 1, of the boxes that stay, int32, the one with the highest score first; of eager tensors.
takes [[boxes, scores, max_output_size: whole, iou_threshold: number = 0.5, score_threshold?: number, { name?; }]]
function image.non_max_suppression(boxes, scores, most, iou, least)
  local what = "non_max_suppression"
  boxes, scores = eager(boxes, what), eager(scores, what)
  local n = check_dims(boxes, what, "boxes", false, 4)[1]
  check_dims(scores, what, "scores", n)
  check_threshold(iou, what)
  local places, values = native.doubles(boxes), native.doubles(scores)
  local list = suppress(n, function(i) return corners(places, 4 * i) end, function(i) return values[i] end, most, iou, least or -math.huge)
  for k, number in ipairs(list) do list[k] = number + 1 end
  return #list > 0 and tools.constant(list, "int32") or tensor.zeros({ 0 }, { dtype = "int32" })
end

-- Of boxes {batch, n, q, 4}, q = 1 or the number of classes, and scores {batch, n, classes}: boxes {batch, size, 4}, scores, classes from 0
-- {batch, size} and the numbers of them that are valid {batch}, as a list that has them by their names, too; the rest is zeros. Boxes of
-- different classes do not suppress each other. Eager tensors.
takes [[boxes, scores, max_output_size_per_class: whole, max_total_size: count, iou_threshold: number = 0.5, score_threshold?: number,
  pad_per_class: boolean = false, clip_boxes: boolean = true, { name?; }]]
function image.combined_non_max_suppression(boxes, scores, per_class, total, iou, least, pad_per_class, clip)
  local what = "combined_non_max_suppression"
  boxes, scores = eager(boxes, what), eager(scores, what)
  local dims = check_dims(boxes, what, "boxes", false, false, false, 4)
  local batch, n, shared = dims[1], dims[2], dims[3]
  local classes = check_dims(scores, what, "scores", batch, n, false)[3]
  if shared ~= 1 and shared ~= classes then raise("flow.image.%s: boxes for 1 class or for %d, got %d", what, classes, shared) end
  check_threshold(iou, what)
  local places, values = native.doubles(boxes), native.doubles(scores)
  local size = pad_per_class and math.min(total, per_class * classes) or total
  local found = { boxes = {}, scores = {}, classes = {}, valid = {} }
  for b = 0, batch - 1 do
    local all = {}
    for class = 0, classes - 1 do
      local function place(i) return ((b * n + i) * shared + (shared == 1 and 0 or class)) * 4 end
      local function score(i) return values[(b * n + i) * classes + class] end
      for _, i in ipairs(suppress(n, function(i) return corners(places, place(i)) end, score, per_class, iou, least or -math.huge)) do
        all[#all + 1] = { first = place(i), score = score(i), class = class, at = #all }
      end
    end
    table.sort(all, function(x, y) return x.score > y.score or x.score == y.score and x.at < y.at end)
    found.valid[b + 1] = math.min(#all, size)
    for k = 1, size do
      local entry = all[k]
      for c = 0, 3 do
        local value = entry and places[entry.first + c] or 0
        table.insert(found.boxes, clip and math.min(math.max(value, 0), 1) or value)
      end
      table.insert(found.scores, entry and entry.score or 0)
      table.insert(found.classes, entry and entry.class or 0)
    end
  end
  local list = { tools.constant(found.boxes, "float32", { batch, size, 4 }), tools.constant(found.scores, "float32", { batch, size }),
    tools.constant(found.classes, "float32", { batch, size }), tools.constant(found.valid, "int32") }
  list.nmsed_boxes, list.nmsed_scores, list.nmsed_classes, list.valid_detections = unpack(list)
  return list
end

---- parts of pictures ------------------------------------------------------------------------------

-- How much each of n pixels counts at places {boxes, count}: {boxes, count, n}; by the two nearest pixels, or by the nearest.
local function pixel_shares(places, n, method)
  local pixels = tools.constant(tools.count(n), "float32")
  if method == "nearest" then return ops.eq(ops.expand_dims(ops.round(places), -1), pixels):to "float32" end
  return ops.maximum(1 - ops.abs(ops.expand_dims(places, -1) - pixels), 0)
end

-- Parts of pictures {batch, height, width, channels} in one size, float32 {boxes, crop height, crop width, channels}. Boxes are in shares
-- of height and width; box_indices are positions of pictures, from 1. Places outside of a picture get extrapolation_value.
takes [[image, boxes, box_indices, crop_size: list, method: 'bilinear'|'nearest' = 'bilinear', extrapolation_value: number = 0,
  { name?; }]]
function image.crop_and_resize(pictures, boxes, positions, size, method, outside)
  local what = "crop_and_resize"
  pictures = ops.operand(pictures, nil, "flow.image." .. what):to "float32"
  boxes = ops.operand(boxes, nil, "flow.image." .. what):to "float32"
  local dims = check_dims(pictures, what, "pictures", false, false, false, false)
  check_dims(boxes, what, "boxes", false, 4)
  local height, width = image.check_size("flow.image.crop_and_resize: crop_size", size)
  local function places(first, last, n, count)
    local from, to = tools.part(boxes, 2, first, first), tools.part(boxes, 2, last, last)
    if count == 1 then return (from + to) * (0.5 * (n - 1)) end
    return from * (n - 1) + (to - from) * ((n - 1) / (count - 1)) * tools.constant(tools.count(count), "float32")
  end
  local rows, columns = places(1, 3, dims[2], height), places(2, 4, dims[3], width)
  local function inside(at, n) return ops.logical_and(ops.ge(at, 0), ops.le(at, n - 1)) end
  local kept = ops.logical_and(ops.expand_dims(inside(rows, dims[2]), 3), ops.expand_dims(inside(columns, dims[3]), 2))
  local parts = ops.einsum("nyh,nhwc->nywc", pixel_shares(rows, dims[2], method), ops.take(pictures, positions, 1))
  parts = ops.einsum("nxw,nywc->nyxc", pixel_shares(columns, dims[3], method), parts)
  return ops.where(ops.expand_dims(kept, 4), parts, outside)
end

return image
