/** Cumulative sums of layers, for stacked drawing: each value is added to the sum of those below it. */
export function stacked(layers: readonly (readonly (number | null)[])[]): number[][] {
  const sums: number[] = [];
  return layers.map((layer) =>
    layer.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0);
      return sums[index];
    }),
  );
}
