/** The three tools of the sandbox: the same arguments give the same result. Pure but for the clock that is given. */

export interface SandboxTool {
  readonly name: string;
  readonly description: string;
  readonly properties: Record<string, Record<string, string | number>>;
  readonly required: readonly string[];
  /** Throws an Error for what the tool reports as its failure. */
  run(given: Readonly<Record<string, unknown>>, now: number): object;
}

const skies = ['clear', 'cloudy', 'rain', 'wind', 'snow'] as const;
const orderStates = ['received', 'packed', 'on its way', 'delivered'] as const;

export const sandboxTools: readonly SandboxTool[] = [
  {
    name: 'weather',
    description: 'Says the weather of a city, made up from its name. There is none in Atlantis.',
    properties: { city: { type: 'string', description: 'Name of the city.' } },
    required: ['city'],
    run({ city }) {
      const name = text(city, 'city');
      if (/^atlantis$/i.test(name)) throw new Error('There is no weather in Atlantis.');
      const seed = seedOf(name.toLowerCase());
      return { city: name, sky: skies[seed % skies.length], celsius: (seed % 45) - 10 };
    },
  },
  {
    name: 'time',
    description: 'Says the time in a zone.',
    properties: { zone: { type: 'string', description: 'Name of the zone, such as Europe/Oslo.' } },
    required: ['zone'],
    run({ zone }, now) {
      const name = text(zone, 'zone');
      try {
        const time = new Intl.DateTimeFormat('sv-SE', { timeZone: name, dateStyle: 'short', timeStyle: 'medium' });
        return { zone: name, time: time.format(now) };
      } catch {
        throw new Error('There is no such zone.');
      }
    },
  },
  {
    name: 'order',
    description: 'Looks an order of a shop up, made up from its number.',
    properties: { number: { type: 'integer', minimum: 1, description: 'Number of the order.' } },
    required: ['number'],
    run({ number }) {
      if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 1)
        throw new Error('"number" must be a whole number from 1 on.');
      return { number, state: orderStates[number % orderStates.length], parcels: 1 + (number % 3) };
    },
  },
];

function text(value: unknown, name: string): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= 200) return value;
  throw new Error(`"${name}" must be a text of 1 to 200 characters.`);
}

function seedOf(word: string): number {
  let seed = 7;
  for (const letter of word) seed = (seed * 31 + letter.codePointAt(0)!) % 1_000_003;
  return seed;
}
