/** Layers as they are drawn on top of each other: each value on the sum of those below it. */
export function stacked(layers: readonly (readonly (number | null)[])[]): number[][] {
  const sums: number[] = [];
  return layers.map((layer) =>
    layer.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0);
      return sums[index];
    }),
  );
}
