/** The templates as the build finds them. Apart from the rest, since only the build can gather files. */
const found = import.meta.glob<string>('./*.txt', { query: '?raw', import: 'default', eager: true });

export const templateOf = (name: string): string => found[`./${name}.txt`] ?? '';
