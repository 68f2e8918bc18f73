/** Text for a terminal or an editor: scrolls in its own box, and can be copied whole. */
import { Box, Text } from '@mantine/core';
import { CopyButton } from './copy-button.tsx';

interface CodeBlockProps {
  readonly text: string;
  /** Stands above: the file that it belongs into. */
  readonly title?: string | undefined;
  readonly label: string;
}

export function CodeBlock({ text, title, label }: CodeBlockProps) {
  return (
    <section className="code-block" aria-label={label}>
      <Box className="code-block-head">
        <Text fz="xs" c="dimmed" ff="monospace" truncate>
          {title}
        </Text>
        <CopyButton text={text} />
      </Box>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </section>
  );
}
