/** The button that saves rows as CSV which the page itself puts together. */
import { Button } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

interface SaveCsvProps {
  /** Rows that are read so far, while they are; undefined: nothing is under way. */
  readonly told?: number | undefined;
  readonly onSave: () => void;
}

export function SaveCsv({ told, onSave }: SaveCsvProps) {
  const { t } = useTranslation();
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      color="gray"
      leftSection={<IconDownload size={14} />}
      title={t('shell.csvLabel')}
      disabled={told !== undefined}
      onClick={onSave}
    >
      {told === undefined ? t('shell.csv') : `${told} …`}
    </Button>
  );
}
