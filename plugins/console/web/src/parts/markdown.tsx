/** Text of a model as people read it. Elements are made, never HTML: nothing that a model writes can run or load. */
import { Anchor, Code, Table } from '@mantine/core';
import { memo, type ReactNode } from 'react';
import { CodeBlock } from './code-block.tsx';
import { type Block, blocksOf, spansOf } from './markdown-blocks.ts';

export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  return (
    <div className="markdown">
      {blocksOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks only grow at their end
        <OneBlock key={index} of={block} />
      ))}
    </div>
  );
});

function OneBlock({ of: block }: { readonly of: Block }) {
  switch (block.kind) {
    case 'code':
      return <CodeBlock text={block.text} title={block.language || undefined} label={block.language || 'code'} />;
    case 'heading':
      // Headings of an answer are none of the page.
      return (
        <p className="markdown-heading" data-level={block.level}>
          <Inline text={block.text} />
        </p>
      );
    case 'list': {
      const items = block.items.map((text, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items only grow at their end
        <li key={index}>
          <Inline text={text} />
        </li>
      ));
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case 'quote':
      return (
        <blockquote>
          <Inline text={block.text} />
        </blockquote>
      );
    case 'rule':
      return <hr />;
    case 'table':
      return (
        <Table.ScrollContainer minWidth={320}>
          <Table
            data={{
              head: block.head.map(cell),
              body: block.rows.map((row) => row.map(cell)),
            }}
          />
        </Table.ScrollContainer>
      );
    default:
      return (
        <p>
          <Inline text={block.text} />
        </p>
      );
  }
}

const cell = (text: string): ReactNode => <Inline text={text} />;

function Inline({ text }: { readonly text: string }) {
  return spansOf(text).map(({ kind, text: inner, href }, index) => {
    const key = `${index} ${kind}`;
    if (kind === 'code') return <Code key={key}>{inner}</Code>;
    if (kind === 'strong') return <strong key={key}>{inner}</strong>;
    if (kind === 'em') return <em key={key}>{inner}</em>;
    if (kind === 'link')
      return (
        <Anchor key={key} href={href} target="_blank" rel="noreferrer noopener" inherit>
          {inner}
        </Anchor>
      );
    return inner;
  });
}
