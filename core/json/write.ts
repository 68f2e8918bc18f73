/** Writes JSON as JSON.stringify does, in slices of bounded work. Pure. */

export interface WriteOptions {
  /** Called between two slices; what it returns is waited for. `units`: the work of the slice before it. */
  readonly pause: (units: number) => Promise<void>;
  readonly sizes?: WriteSizes;
}

/** Units of work: a character of text, or a member or element, which counts as several. */
interface WriteSizes {
  readonly slice: number;
  /** Longer strings are written by pieces of this length. */
  readonly piece: number;
}

const defaultWriteSizes: WriteSizes = { slice: 512 * 1024, piece: 256 * 1024 };
/** A value costs as much as so many characters. */
const valueUnits = 24;

const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

/** The parts of the JSON text, in UTF-8. For what `JSON.parse` and `JSON.rawJSON` can make, with undefined members left out. */
export async function writeInSlices(
  value: object,
  { pause, sizes = defaultWriteSizes }: WriteOptions,
): Promise<Buffer[]> {
  const writer = new SliceWriter(sizes, pause);
  await writer.write(value);
  return writer.end();
}

class SliceWriter {
  readonly #sizes: WriteSizes;
  readonly #pause: WriteOptions['pause'];
  readonly #parts: Buffer[] = [];
  #text = '';
  #worked = 0;

  constructor(sizes: WriteSizes, pause: WriteOptions['pause']) {
    this.#sizes = sizes;
    this.#pause = pause;
  }

  end(): Buffer[] {
    this.#flush();
    return this.#parts;
  }

  async write(value: unknown): Promise<void> {
    const units = unitsOf(value, this.#sizes.slice);
    if (units <= this.#sizes.slice) {
      if (this.#worked + units > this.#sizes.slice) await this.#rest();
      this.#worked += units;
      // An element that is undefined is null, as a member it does not come here.
      this.#text += JSON.stringify(value) ?? 'null';
    } else if (typeof value === 'string') await this.#writeString(value);
    else if (Array.isArray(value)) await this.#writeList(value);
    else await this.#writeObject(value as Record<string, unknown>);
  }

  async #writeList(list: readonly unknown[]): Promise<void> {
    this.#text += '[';
    for (let index = 0; index < list.length; index++) {
      if (index > 0) this.#text += ',';
      const pending = this.#writeSmall(list[index]) ?? this.write(list[index]);
      if (pending !== done) await pending;
    }
    this.#text += ']';
  }

  async #writeObject(members: Readonly<Record<string, unknown>>): Promise<void> {
    let before = '{';
    for (const name of Object.keys(members)) {
      const value = members[name];
      if (value === undefined) continue;
      this.#text += before;
      before = ',';
      await this.write(name);
      this.#text += ':';
      await this.write(value);
    }
    this.#text += before === '{' ? '{}' : '}';
  }

  /** What fits into the slice costs no promise. undefined: it does not. */
  #writeSmall(value: unknown): typeof done | undefined {
    const left = this.#sizes.slice - this.#worked;
    const units = unitsOf(value, left);
    if (units > left) return undefined;
    this.#worked += units;
    this.#text += JSON.stringify(value) ?? 'null';
    return done;
  }

  async #writeString(text: string): Promise<void> {
    this.#text += '"';
    for (let at = 0; at < text.length; ) {
      const to = cutOf(text, at + this.#sizes.piece);
      if (this.#worked + to - at > this.#sizes.slice) await this.#rest();
      this.#worked += to - at;
      this.#text += JSON.stringify(text.slice(at, to)).slice(1, -1);
      at = to;
    }
    this.#text += '"';
  }

  async #rest(): Promise<void> {
    this.#flush();
    const worked = this.#worked;
    this.#worked = 0;
    if (worked > 0) await this.#pause(worked);
  }

  #flush(): void {
    if (this.#text !== '') this.#parts.push(Buffer.from(this.#text));
    this.#text = '';
  }
}

const done = Symbol('done');

/** The end of a piece, which takes no character apart. */
function cutOf(text: string, wanted: number): number {
  if (wanted >= text.length) return text.length;
  const isHigh = (text.charCodeAt(wanted - 1) & 0xfc00) === 0xd800;
  return isHigh && (text.charCodeAt(wanted) & 0xfc00) === 0xdc00 ? wanted + 1 : wanted;
}

/** The work to write this value; counting stops beyond `most`. */
function unitsOf(value: unknown, most: number): number {
  if (typeof value === 'string') return valueUnits + value.length;
  if (typeof value !== 'object' || value === null || isRawJSON(value)) return valueUnits;
  let units = valueUnits;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && units <= most; index++) units += unitsOf(value[index], most - units);
    return units;
  }
  for (const name in value) {
    if (units > most) break;
    units += name.length + unitsOf((value as Record<string, unknown>)[name], most - units);
  }
  return units;
}
