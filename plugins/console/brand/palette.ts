/** Ten shades of one colour, such that words on each and in each can be read in light and in dark. Pure. */

type Rgb = readonly [red: number, green: number, blue: number];

const white: Rgb = [255, 255, 255];
const black: Rgb = [0, 0, 0];
/** The ground of panels in the dark, which links must stand out of. */
const darkPanel: Rgb = [30, 35, 48];
/** What WCAG asks for of text. */
const leastContrast = 4.5;
const steps = 100;

const parse = (hex: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as never;
const write = (rgb: Rgb) => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
const mix = (from: Rgb, to: Rgb, share: number): Rgb =>
  from.map((part, index) => Math.round(part + (to[index]! - part) * share)) as never;

function luminance(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrastOf(left: Rgb, right: Rgb): number {
  const [high, low] = [luminance(left), luminance(right)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** The contrast of two colours such as `#0a7d55`, from 1 to 21. */
export const contrast = (left: string, right: string): number => contrastOf(parse(left), parse(right));

/** The first mixture with `towards` that stands out of `ground` enough. */
function readable(colour: Rgb, towards: Rgb, ground: Rgb): Rgb {
  for (let step = 0; step < steps; step += 1) {
    const mixed = mix(colour, towards, step / steps);
    if (contrastOf(mixed, ground) >= leastContrast) return mixed;
  }
  return towards;
}

/** From the palest to the darkest: 6 and 7 carry white words, 4 and the paler ones are read on dark panels. */
export function paletteOf(accent: string): readonly string[] {
  const filled = readable(parse(accent), black, white);
  const link = readable(mix(filled, white, 0.3), white, darkPanel);
  const pale = [0.9, 0.78, 0.55, 0.3].map((share) => mix(link, white, share));
  const dark = [0.1, 0.22, 0.36].map((share) => mix(filled, black, share));
  return [...pale, link, mix(filled, white, 0.15), filled, ...dark].map(write);
}
