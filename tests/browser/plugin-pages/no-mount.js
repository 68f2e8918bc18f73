/** Exports nothing that the console could call. */
export const other = 1;
