/** Masks the secrets of a gateway file: values under names such as `key` or `password`; names of variables stay. Pure. */

const secretNames =
  /^(\s*(?:- )?["']?[\w-]*(?:keys?|secrets?|passwords?|pass|tokens?|webhooks?|database|redis)["']?\s*:\s*)(.*)$/i;
/** `key: …` inside braces, and items of a list below such a name. */
const inFlow =
  /((?:^|[{,]\s*)["']?[\w-]*(?:keys?|secrets?|passwords?|pass|tokens?|webhooks?)["']?\s*:\s*)([^,}{\s[][^,}]*)/gi;
/** Lists below such a name, over any number of lines. */
const lists =
  /((?:^|[{,])[ \t]*(?:- )?["']?[\w-]*(?:keys?|secrets?|passwords?|pass|tokens?|webhooks?)["']?\s*:\s*)(\[[^\]]*\]?)/gim;
const variable = String.raw`["']?\$\{(?:[A-Z_][A-Z0-9_]*(?::-)?|[a-z][a-z0-9_-]*:(?!-)[^}]*)\}["']?`;
const harmless = new RegExp(
  String.raw`^(?:\s*|embedded|memory|on|off|${variable}|\[\s*${variable}(?:\s*,\s*${variable})*\s*\]|["']{2})\s*(?:#.*)?$`,
);
const credentials = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]+:)[^\s@]+@/gi;

export function withoutSecrets(text: string): string {
  let below: number | undefined;
  return text
    .replace(lists, (whole, name: string, list: string) =>
      harmless.test(list) ? whole : `${name}"***"${'\n'.repeat(list.split('\n').length - 1)}`,
    )
    .split('\n')
    .map((line) => {
      const indent = line.length - line.trimStart().length;
      const item = /^(\s*-\s+)(.*)$/.exec(line);
      if (below !== undefined && item !== null && indent >= below)
        return harmless.test(item[2]!) ? line : `${item[1]}"***"`;
      if (line.trim() !== '') below = undefined;
      const found = secretNames.exec(line);
      if (found === null) return masked(line);
      const [, name, value] = found as unknown as [string, string, string];
      if (value.trim() === '' || /^\s*[|>]/.test(value)) below = indent;
      return harmless.test(value) ? line : `${name}"***"`;
    })
    .join('\n');
}

function masked(line: string): string {
  return line
    .replace(inFlow, (whole, name: string, value: string) => (harmless.test(value) ? whole : `${name}"***"`))
    .replace(credentials, '$1***@');
}
