// A round pen with smooth edges: `srwm.data.strokes_pen`, in the same float32 operations.

import { rint } from "./arithmetic.js";

const f = Math.fround;

// Draw paths, bright on dark. paths: of points [x, y] in image sides; radii: of the pen, for each path.
export function drawPaths(paths, radii, size) {
  const depth = new Float32Array(size * size); // How far each pixel lies within the ink.
  paths.forEach((path, i) => {
    const corners = path.map((point) => point.map((at) => f(f(f(at) * size) - 0.5)));
    const reach = f(f(f(radii[i]) * size) + 0.5);
    for (let j = 1; j < corners.length; j++) drawPiece(depth, corners[j - 1], corners[j], reach, size);
  });
  return Uint8Array.from(depth, (ink) => f(f(Math.min(ink, 1) * 255) + 0.5));
}

function drawPiece(depth, [startX, startY], [endX, endY], reach, size) {
  const [alongX, alongY] = [f(endX - startX), f(endY - startY)];
  const squared = Math.max(f(f(alongX * alongX) + f(alongY * alongY)), f(1e-12));
  const [unitX, unitY] = [f(alongX / squared), f(alongY / squared)];
  const half = Math.ceil(Math.max(Math.abs(alongX), Math.abs(alongY)) / 2 + reach + 0.5);
  const [middleX, middleY] = [rint(f(startX + f(alongX / 2))), rint(f(startY + f(alongY / 2)))];
  for (let row = Math.max(0, middleY - half); row <= Math.min(size - 1, middleY + half); row++) {
    const y = f(row - startY);
    for (let column = Math.max(0, middleX - half); column <= Math.min(size - 1, middleX + half); column++) {
      const x = f(column - startX);
      // The share of the piece at which it comes nearest to the pixel.
      const nearest = Math.min(Math.max(f(f(y * unitY) + f(x * unitX)), 0), 1);
      const dx = f(x - f(nearest * alongX));
      const dy = f(y - f(nearest * alongY));
      const inside = f(reach - f(Math.sqrt(f(f(dx * dx) + f(dy * dy)))));
      const at = row * size + column;
      if (inside > depth[at]) depth[at] = inside;
    }
  }
}
