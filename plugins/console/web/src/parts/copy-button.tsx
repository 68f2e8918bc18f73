/** Copies a text and says that it did. */
import { ActionIcon, Button, CopyButton as Copier, Tooltip } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

interface CopyButtonProps {
  readonly text: string;
  /** Names the copied text, for screen readers. */
  readonly label?: string;
  /** With a word beside the picture. */
  readonly wide?: boolean;
  /** The first thing in a dialog. */
  readonly focused?: boolean;
}

export function CopyButton({ text, label, wide = false, focused }: CopyButtonProps) {
  const { t } = useTranslation();
  return (
    <Copier value={text} timeout={1500}>
      {({ copied, copy }) => {
        const said = copied ? t('shell.copied') : (label ?? t('shell.copy'));
        const icon = copied ? <IconCheck size={15} /> : <IconCopy size={15} />;
        if (wide)
          return (
            <Button
              variant={copied ? 'light' : 'default'}
              size="xs"
              leftSection={icon}
              onClick={copy}
              aria-label={said}
              data-autofocus={focused}
            >
              {copied ? t('shell.copied') : t('shell.copy')}
            </Button>
          );
        return (
          <Tooltip label={said}>
            <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} size={24} onClick={copy} aria-label={said}>
              {icon}
            </ActionIcon>
          </Tooltip>
        );
      }}
    </Copier>
  );
}
