/** Makers of models: their names as they write them, and models of one maker one after another. */
import names from '../texts/makers.json';

const known = new Map(Object.entries(names));

/** Others are shown as the catalogue has them. */
export const makerName = (owner: string): string => known.get(owner) ?? owner;

/** In the order in which the makers come first. */
export const byMaker = <Row extends { readonly ownedBy?: string }>(rows: readonly Row[]): readonly Row[] =>
  [...Map.groupBy(rows, ({ ownedBy = '' }) => ownedBy).values()].flat();
