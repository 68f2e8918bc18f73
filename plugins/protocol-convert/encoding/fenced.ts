/** Code that a vendor ran, as text in a markdown block: other protocols have no member for it. Pure. */

/** `language` may be empty, as for a program's output. */
export function fenced(language: string, text: string): string {
  return `\n\`\`\`${language}\n${text === '' || text.endsWith('\n') ? text : `${text}\n`}\`\`\`\n`;
}
