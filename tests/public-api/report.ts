/** The report of the stable names, as it stands in the repository: a change of what authors may rely on is seen in review. */
import type { Surface } from './surface.ts';

export const reportFile = 'plugins/common/author/API.md';

export function reportOf({ stable }: Surface): string {
  const sections = [...stable].map(([module, names]) => {
    const signatures = names.map(({ name, signature }) =>
      name.includes('.') ? `// ${name}\n${signature}` : signature,
    );
    return `## ${module}\n\n\`\`\`ts\n${signatures.join('\n')}\n\`\`\`\n`;
  });
  return `# The public API\n\nWritten by \`npm run api\`: the stable names and their signatures. Their docstrings are in the declarations of the package.\n\n${sections.join('\n')}`;
}
